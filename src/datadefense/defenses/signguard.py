"""SignGuard: norms that are not odd, and the largest cluster of shares of signs."""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from datadefense.core.defense import CLIPPED_MEAN, Combined, Defense, Promise, applied, fall_back
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, setting
from datadefense.defenses.mean_shift import estimated_radius, largest_cluster
from datadefense.kernels.mixing import clip_factors
from datadefense.kernels.passes import whole_rows
from datadefense.kernels.sums import norms

LEAST = 4
"""Of fewer clients the half that sets the radius is the client itself."""
QUANTILE = 0.5
"""Share of the clients within whose distance, on average, the radius reaches."""
FAR = 1e30
"""A norm in medians where the median is 0."""


def sign_shares(columns: Float[Tensor, "clients width"]) -> Float64[Tensor, "clients signs"]:
    """Return each client's shares of positive, zero and negative values."""
    counts = [
        torch.stack([(part > 0).sum(1), (part == 0).sum(1), (part < 0).sum(1)], dim=1)
        for part in (columns[rows] for rows in whole_rows(columns))
    ]
    return torch.cat(counts).double() / columns.shape[1]


def relative_norms(lengths: Float64[Tensor, " clients"]) -> Float64[Tensor, " clients"]:
    """Return norms in medians; where the median is 0, zeros are 1 and all others are far."""
    middle = float(lengths.quantile(0.5))
    if middle > 0:
        return lengths / middle
    return torch.where(lengths > 0, FAR, 1.0)


def usual_signs(shares: Float64[Tensor, "clients signs"]) -> Bool[Tensor, " clients"]:
    """Mark the largest cluster of shares, each divided by its greatest."""
    features = (shares / shares.amax(0).clamp(min=1e-300)).numpy().astype(np.float64)
    return torch.from_numpy(largest_cluster(features, estimated_radius(features, QUANTILE)))


@dataclass(frozen=True, slots=True)
class SignGuard(Defense[None]):
    r"""Average, clipped, who has a usual norm and a usual share of positive and negative values.

    .. math::
        A &= \Big\{ j : L < \frac{\lVert u_j \rVert}{M} < R \Big\} \cap
             \text{largest cluster of } (p_j^+, p_j^0, p_j^-), \qquad
        M = \mathrm{median}_j \lVert u_j \rVert \\
        u &= \frac{1}{|A|} \sum_{j \in A} u_j \min\Big(1, \frac{M}{\lVert u_j \rVert}\Big)

    The shares of signs are of a block of neighbouring coordinates, drawn from the server's seed and
    the round's index, each divided by its greatest over the clients; clusters are those of mean
    shift with a flat kernel (`mean_shift`). If nobody is in both sets the model stays. Needs
    n >= 4; with three clients the median of each coordinate, with fewer the model stays.

    Reference: Xu et al., *Byzantine-robust Federated Learning through Collaborative Malicious
    Gradient Filtering*, ICDCS 2022, algorithm 2 (the plain form; -Sim and -Dist have a further
    feature).

    Differs: FLPoison clusters with DBSCAN, where all may be noise and the rule fails.
    """

    norm_low: float = setting(0.1, "least norm L, in median norms")
    norm_high: float = setting(3.0, "greatest norm R, in median norms")
    block_fraction: float = setting(0.1, "share of the coordinates whose signs are counted")

    name: ClassVar[str] = "signguard"
    promises: ClassVar[Promise] = CLIPPED_MEAN

    def __post_init__(self) -> None:
        check_float("norm_low", self.norm_low, minimum=0, below=1)
        check_float("norm_high", self.norm_high, above=1)
        check_float("block_fraction", self.block_fraction, above=0, maximum=1)

    def shortage(self, num_clients: int) -> str | None:
        """A client must have a neighbour within half of the round: n >= 4."""
        if num_clients >= LEAST:
            return None
        return f"{self.name} needs n >= {LEAST}, got n={num_clients}"

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> None:
        """Return the empty state."""
        return

    def aggregate(self, state: None, round: Round, server: Server) -> Aggregate[None]:
        """Average who passes both tests, or fall back."""
        if problem := self.shortage(round.num_clients):
            return applied(fall_back(round, problem, self.assumed_malicious()), round, None)
        return applied(self._combined(round, server), round, None)

    def _combined(self, round: Round, server: Server) -> Combined:
        lengths = norms(round.updates)
        bound = float(lengths.quantile(0.5))
        relative = relative_norms(lengths)
        shares = sign_shares(self._block(round, server))
        usual = usual_signs(shares)
        within = (relative > self.norm_low) & (relative < self.norm_high)
        kept = within & usual
        count = int(kept.sum())
        weights = clip_factors(lengths, bound) * kept / max(1, count)
        report: dict[str, Any] = {"kept": count, "norm_bound": bound}
        if count == 0:
            report["fallback"] = f"{self.name}: nobody passed both tests: kept the model"
        positive = shares[:, 0]
        middle = float(positive[usual].quantile(0.5))
        rows = zip(
            relative.tolist(), usual.tolist(), positive.tolist(), lengths.tolist(), strict=True
        )
        return Combined(
            weights=weights.to(round.updates.dtype),
            evidence={"norm": lengths, "norm_ratio": relative, "positive": positive},
            report=report,
            reasons=[self._reason(*row, middle=middle, bound=bound) for row in rows],
        )

    def _reason(
        self,
        relative: float,
        usual: bool,
        positive: float,
        length: float,
        *,
        middle: float,
        bound: float,
    ) -> Reason | None:
        if not relative > self.norm_low:
            return Reason("norm_low", relative, self.norm_low)
        if not relative < self.norm_high:
            return Reason("norm_high", relative, self.norm_high)
        if not usual:
            return Reason("sign_shares", positive, middle)
        return Reason("norm", length, bound) if length > bound else None

    def _block(self, round: Round, server: Server) -> Float[Tensor, "clients width"]:
        """Return the coordinates whose signs are counted."""
        dim = len(round.global_params)
        width = max(1, int(self.block_fraction * dim))
        draw = server.generator(self.name, round.index)
        start = int(torch.randint(dim - width + 1, (), generator=draw))
        return round.updates[:, start : start + width]
