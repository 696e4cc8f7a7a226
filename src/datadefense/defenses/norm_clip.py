"""Norm difference clipping (NDC), its adaptive form, and weak differential privacy."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.core.defense import CLIPPED_MEAN, Combined, Defense, Promise, Rule
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, setting
from datadefense.kernels.mixing import clip_factors
from datadefense.kernels.sums import add_weighted, norms


class Clipping(NamedTuple):
    """The norms of a round's updates, and the factors that bring them to a bound."""

    norms: Float64[Tensor, " clients"]
    scales: Float64[Tensor, " clients"]
    bound: float

    def evidence(self) -> dict[str, Tensor]:
        """Return norm and factor of each client, for the report."""
        return {"norm": self.norms, "scale": self.scales}

    def reasons(self) -> list[Reason | None]:
        """Return the norm and the bound of each client that was clipped."""
        pairs = zip(self.norms.tolist(), self.scales.tolist(), strict=True)
        return [Reason("norm", norm, self.bound) if scale < 1 else None for norm, scale in pairs]


def clip(updates: Float[Tensor, "clients dim"], bound: float | None) -> Clipping:
    r"""Return norms and factors :math:`\min(1, b / \lVert u_j \rVert)`; b None: the mean norm."""
    lengths = norms(updates)
    limit = float(lengths.mean()) if bound is None else bound
    return Clipping(lengths, clip_factors(lengths, limit), limit)


def combine_clipped(round: Round, bound: float | None) -> Combined:
    """Weight by examples, times the factor that clips to the bound."""
    clipping = clip(round.updates, bound)
    return Combined(
        weights=(round.shares() * clipping.scales).to(round.updates.dtype),
        evidence=clipping.evidence(),
        report={"norm_bound": clipping.bound},
        reasons=clipping.reasons(),
    )


@dataclass(frozen=True, slots=True)
class Ndc(Rule):
    r"""Clip each update to a norm bound, then average by examples.

    .. math:: u = \sum_j \frac{n_j}{n} u_j \min\Big(1, \frac{b}{\lVert u_j \rVert}\Big)

    Any number of clients. The weights are the shares times the factors, so they sum to less than
    1 when something was clipped.

    Reference: Sun et al., *Can You Really Backdoor Federated Learning?*, 2019.
    """

    norm_bound: float = setting(2.0, "greatest norm b that an update keeps")

    name: ClassVar[str] = "ndc"
    promises: ClassVar[Promise] = CLIPPED_MEAN

    def __post_init__(self) -> None:
        check_float("norm_bound", self.norm_bound, above=0)

    def combine(self, round: Round) -> Combined:
        """Weight the clipped updates by examples."""
        return combine_clipped(round, self.norm_bound)


@dataclass(frozen=True, slots=True)
class NdcAdaptive(Rule):
    r"""Clip each update to the round's mean norm, then average by examples.

    As NDC with :math:`b = \frac1n \sum_j \lVert u_j \rVert` over all clients, also attackers: a
    huge update raises the bound, so the result is not bounded. Any number of clients.

    Reference: Wang et al., *Attack of the Tails*, NeurIPS 2020 (as released).
    """

    name: ClassVar[str] = "ndc-adaptive"
    promises: ClassVar[Promise] = CLIPPED_MEAN & ~Promise.BOUNDED

    def combine(self, round: Round) -> Combined:
        """Weight the clipped updates by examples."""
        return combine_clipped(round, None)


@dataclass(frozen=True, slots=True)
class WeakDp(Defense[None]):
    r"""Clip as NDC, average by examples, add Gaussian noise to the result.

    .. math:: u = \sum_j \frac{n_j}{n} u_j \min\Big(1, \frac{b}{\lVert u_j \rVert}\Big) +
              \mathcal N(0, \sigma^2 I)

    Too little noise for a privacy guarantee, hence "weak". The noise of a round depends on the
    server's seed and the round's index alone. Any number of clients.

    Reference: Sun et al., *Can You Really Backdoor Federated Learning?*, 2019, section 4. The
    default sigma is ours: a tenth of their 0.025, whose norm over the 9.2 million parameters of a
    VGG-9 would be 76.
    """

    norm_bound: float = setting(2.0, "greatest norm b that an update keeps")
    noise_std: float = setting(0.0025, "standard deviation sigma of the noise in a coordinate")

    name: ClassVar[str] = "weak-dp"
    promises: ClassVar[Promise] = Promise.SYMMETRIC | Promise.TRANSLATES | Promise.BOUNDED

    def __post_init__(self) -> None:
        check_float("norm_bound", self.norm_bound, above=0)
        check_float("noise_std", self.noise_std, minimum=0)

    def init(self, server: Server, params: Tensor) -> None:
        """Return the empty state."""
        return

    def aggregate(self, state: None, round: Round, server: Server) -> Aggregate[None]:
        """Return the mean of the clipped updates with noise."""
        clipping = clip(round.updates, self.norm_bound)
        weights = (round.shares() * clipping.scales).to(round.updates.dtype)
        noise = torch.randn(
            len(round.global_params),
            generator=server.generator(self.name, round.index),
            dtype=round.updates.dtype,
        ).to(round.updates.device)
        base = noise.mul_(self.noise_std).add_(round.global_params)
        return Aggregate(
            add_weighted(base, weights, round.updates),
            None,
            weights,
            clipping.evidence(),
            reasons=clipping.reasons(),
        )
