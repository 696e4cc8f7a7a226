"""SparseFed: clip, average, momentum, error feedback, and apply only the top-k coordinates."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense import Defense, Promise
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, setting
from datadefense.defenses.norm_clip import clip
from datadefense.kernels.sums import weighted_sum
from datadefense.kernels.top import top_mask


@dataclass(frozen=True, slots=True, eq=False)
class SparseFedState:
    """What has not been applied yet: momentum V and error E, one number per parameter each."""

    momentum: Float[Tensor, " dim"]
    error: Float[Tensor, " dim"]


@dataclass(frozen=True, slots=True)
class SparseFed(Defense[SparseFedState]):
    r"""Apply only the k largest coordinates (in absolute value) of the accumulated clipped mean.

    .. math::
        u &= \tfrac1n \sum_j u_j \min(1, b / \lVert u_j \rVert) \\
        V &\leftarrow \rho V + u, \qquad E \leftarrow E + V \\
        \Delta &= \mathrm{top}_k(E), \qquad E_i, V_i \leftarrow 0 \text{ where } \Delta_i \ne 0

    The last line is error feedback and momentum factor masking. k is a fraction of the
    coordinates, at least one; of equal values the lower index is taken. Any number of clients, all
    with the same weight.

    Reference: Panda et al., *SparseFed: Mitigating Model Poisoning Attacks in Federated Learning
    with Sparsification*, AISTATS 2022. Bound and momentum are the defaults of their code, where k
    is 50,000; the DataDefense paper does not say which k it took.
    """

    norm_bound: float = setting(1.0, "greatest norm b that an update keeps")
    top_fraction: float = setting(0.1, "share k / dim of the coordinates that are applied")
    momentum: float = setting(0.0, "server momentum rho")

    name: ClassVar[str] = "sparsefed"
    promises: ClassVar[Promise] = Promise.SYMMETRIC | Promise.TRANSLATES | Promise.BOUNDED

    def __post_init__(self) -> None:
        check_float("norm_bound", self.norm_bound, above=0)
        check_float("top_fraction", self.top_fraction, above=0, maximum=1)
        check_float("momentum", self.momentum, minimum=0, below=1)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> SparseFedState:
        """Return zero momentum and zero error."""
        return SparseFedState(torch.zeros_like(params), torch.zeros_like(params))

    def aggregate(
        self, state: SparseFedState, round: Round, server: Server
    ) -> Aggregate[SparseFedState]:
        """Apply the top coordinates and carry the rest over."""
        clipping = clip(round.updates, self.norm_bound)
        weights = (clipping.scales / round.num_clients).to(round.updates.dtype)
        momentum = weighted_sum(weights, round.updates).add_(state.momentum, alpha=self.momentum)
        error = state.error + momentum
        count = max(1, round_half_up(self.top_fraction * len(error)))
        sent = top_mask(error, count)
        params = error.where(sent, 0).add_(round.global_params)
        return Aggregate(
            params,
            SparseFedState(momentum.masked_fill_(sent, 0), error.masked_fill_(sent, 0)),
            weights,
            clipping.evidence(),
            {"coordinates": count},
            clipping.reasons(),
        )


def round_half_up(value: float) -> int:
    """Round to the nearest integer, halves up (Python's own rounds halves to even)."""
    return int(value + 0.5)
