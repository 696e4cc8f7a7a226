"""DnC: leave out who lies farthest along the direction in which updates differ most."""

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from jaxtyping import Bool, Float, Float64, Int64
from torch import Tensor

from datadefense.core.defense import MEAN, Combined, Defense, Promise, applied, fall_back, too_few
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, check_int, setting
from datadefense.kernels.passes import chosen_columns

NO_SPREAD = 1e-24
"""Squared distance from the mean, as a share of the squared norms, that is rounding."""


def outlier_scores(rows: Float64[Tensor, "clients columns"]) -> Float64[Tensor, " clients"] | None:
    r"""Return :math:`s_j / \sum_k s_k` with :math:`s_j = \langle x_j - \bar x, v \rangle^2`.

    v is the top right singular vector of the centred rows. With the top eigenvector q of their n x
    n inner products, :math:`s_j = \lambda_1 q_j^2`, so the shares are :math:`q_j^2`. None if the
    rows do not differ.
    """
    rows = rows / rows.abs().max().clamp(min=torch.finfo(rows.dtype).tiny)
    centred = rows - rows.mean(0)
    if float(centred.square().sum()) <= NO_SPREAD * float(rows.square().sum()):
        return None
    top: Tensor = torch.linalg.eigh(centred @ centred.T).eigenvectors[:, -1]
    return top.square()


def without_largest(scores: Float64[Tensor, " clients"], count: int) -> Bool[Tensor, " clients"]:
    """Mark all but the ``count`` largest; of equals the lower index stays."""
    kept = torch.ones(len(scores), dtype=torch.bool)
    kept[scores.sort(stable=True).indices[len(scores) - count :]] = False
    return kept


@dataclass(frozen=True, slots=True)
class Dnc(Defense[None]):
    r"""Average who is never among the c f clients farthest along the top singular vector.

    Again and again (``iterations``): draw b coordinates, centre the updates there, take their top
    right singular vector v, and leave out the c f clients (rounded up) with the largest

    .. math:: s_j = \langle u_j - \bar u, v \rangle^2

    The result is the mean of those that were left out by no iteration; if there are none, the model
    stays. The coordinates depend on the server's seed and the round's index alone. Where updates do
    not differ nobody is left out. Needs n >= 2f + 1; with fewer clients the model stays.

    Not bounded for f > 1: of two huge updates of unlike sizes the greater hides the smaller.

    Reference: Shejwalkar, Houmansadr, *Manipulating the Byzantine*, NDSS 2021, algorithm 2.

    Differs: SignGuard's copy draws 1,000 coordinates, FLPoison a fifth of them, in five iterations;
    both decompose the n x b matrix, this one n x n products.
    """

    num_malicious: int = setting(1, "assumed number of attackers f in a round")
    iterations: int = setting(1, "how often coordinates are drawn and clients left out")
    coordinates: int = setting(10_000, "coordinates b that are drawn, at most all")
    filter_factor: float = setting(1.0, "c: an iteration leaves out c f clients")

    name: ClassVar[str] = "dnc"
    promises: ClassVar[Promise] = MEAN

    def __post_init__(self) -> None:
        check_int("num_malicious", self.num_malicious, 0)
        check_int("iterations", self.iterations, 1)
        check_int("coordinates", self.coordinates, 1)
        check_float("filter_factor", self.filter_factor, above=0, maximum=2)

    def shortage(self, num_clients: int) -> str | None:
        """Honest clients must be the majority: n >= 2f + 1."""
        return too_few(self.name, num_clients, self.num_malicious, 2, 1)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> None:
        """Return the empty state."""
        return

    def aggregate(self, state: None, round: Round, server: Server) -> Aggregate[None]:
        """Average who is left by all iterations, or fall back."""
        if problem := self.shortage(round.num_clients):
            return applied(fall_back(round, problem, self.num_malicious), round, None)
        count = math.ceil(self.filter_factor * self.num_malicious - 1e-9)
        worst: list[tuple[float, float] | None] = [None] * round.num_clients
        most = torch.zeros(round.num_clients, dtype=torch.float64)
        for iteration in range(self.iterations):
            columns = self._columns(round, server, iteration)
            scores = outlier_scores(chosen_columns(round.updates, columns).double())
            if scores is None:
                continue
            kept = without_largest(scores, count)
            limit = float(scores[kept].max())
            for row in (~kept).nonzero().flatten().tolist():
                worst[row] = worst[row] or (float(scores[row]), limit)
            most = most.maximum(scores)
        weights = torch.tensor([float(found is None) for found in worst])
        left = int(weights.sum())
        reasons = [None if found is None else Reason("spread", *found) for found in worst]
        report: dict[str, Any] = {"kept": left}
        if left == 0:
            said = f"{self.name}: every client was left out once: kept the model"
            report["fallback"] = said
        weights = (weights / max(1, left)).to(round.updates)
        return applied(Combined(None, weights, {"spread": most}, report, reasons), round, None)

    def _columns(self, round: Round, server: Server, iteration: int) -> Int64[Tensor, " columns"]:
        """Return the drawn coordinates in order; all where there are no more."""
        dim = len(round.global_params)
        if self.coordinates >= dim:
            return torch.arange(dim)
        draw = server.generator(self.name, round.index, iteration)
        return torch.randperm(dim, generator=draw)[: self.coordinates].sort().values
