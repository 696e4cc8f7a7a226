"""Server momentum: go on in the direction of the rounds before."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense import Promise
from datadefense.core.postaggregator import PostAggregator, Step, with_plain_statistics
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, setting


@dataclass(frozen=True, slots=True, eq=False)
class MomentumState:
    """The momentum m, one number a parameter."""

    momentum: Float[Tensor, " dim"]


@dataclass(frozen=True, slots=True)
class ServerMomentum(PostAggregator[MomentumState]):
    r"""Add a part of the last step to the update.

    .. math:: m_t = \beta\, m_{t-1} + u, \qquad \bar\phi^t = \bar\phi^{t-1} + \eta\, m_t

    BatchNorm's statistics take the update as it is.

    Reference: Hsu et al., *Measuring the Effects of Non-Identical Data Distribution for Federated
    Visual Classification*, 2019 (FedAvgM).
    """

    momentum: float = setting(0.9, "share beta of the momentum that stays from round to round")
    step_size: float = setting(1.0, "step size eta of the server")

    name: ClassVar[str] = "server-momentum"
    keeps: ClassVar[Promise] = Promise.SYMMETRIC | Promise.TRANSLATES | Promise.BOUNDED

    def __post_init__(self) -> None:
        check_float("momentum", self.momentum, minimum=0, below=1)
        check_float("step_size", self.step_size, above=0)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> MomentumState:
        """Return no momentum."""
        return MomentumState(torch.zeros_like(params))

    def step(
        self, state: MomentumState, update: Float[Tensor, " dim"], round: Round, server: Server
    ) -> Step[MomentumState]:
        """Return eta times the new momentum."""
        momentum = self.momentum * state.momentum + update
        made = with_plain_statistics(self.step_size * momentum, update, round)
        return Step(made, MomentumState(momentum), self.step_size)
