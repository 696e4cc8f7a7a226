"""FedAdam: the server takes an Adam step, with the update as its gradient."""

import math
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
class FedAdamState:
    """First moment m, and the root of the second moment v: no square of an update overflows."""

    first: Float[Tensor, " dim"]
    second_root: Float[Tensor, " dim"]


@dataclass(frozen=True, slots=True)
class FedAdam(PostAggregator[FedAdamState]):
    r"""Take an Adam step of the server, with the update in the place of the gradient.

    .. math::
        m_t &= \beta_1 m_{t-1} + (1 - \beta_1) u, \qquad
        v_t = \beta_2 v_{t-1} + (1 - \beta_2) u^2 \\
        \bar\phi^t &= \bar\phi^{t-1} + \eta\, m_t / (\sqrt{v_t} + \tau)

    with :math:`m_0 = 0, v_0 = \tau^2`. A coordinate moves by at most about
    :math:`\eta (1 - \beta_1) / \sqrt{1 - \beta_2}` in the first round, whatever the update is.
    BatchNorm's statistics take the update as it is.

    Reference: Reddi et al., *Adaptive Federated Optimization*, ICLR 2021, algorithm 2.

    Differs from Flower's, which begins with v = 0 and multiplies the step by
    :math:`\sqrt{1 - \beta_2^{t+1}} / (1 - \beta_1^{t+1})` as Adam does; the paper has no such
    factor. Flower's also takes statistics for gradients.
    """

    step_size: float = setting(0.01, "step size eta of the server")
    beta_1: float = setting(0.9, "share of the first moment that stays from round to round")
    beta_2: float = setting(0.99, "share of the second moment that stays from round to round")
    tau: float = setting(1e-3, "degree tau of adaptivity: small steps are divided by it")

    name: ClassVar[str] = "fedadam"
    keeps: ClassVar[Promise] = Promise.SYMMETRIC | Promise.TRANSLATES | Promise.BOUNDED

    def __post_init__(self) -> None:
        check_float("step_size", self.step_size, above=0)
        check_float("beta_1", self.beta_1, minimum=0, below=1)
        check_float("beta_2", self.beta_2, minimum=0, below=1)
        check_float("tau", self.tau, above=0)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> FedAdamState:
        """Return a first moment of 0 and a second one of tau squared."""
        return FedAdamState(torch.zeros_like(params), torch.full_like(params, self.tau))

    def step(
        self, state: FedAdamState, update: Float[Tensor, " dim"], round: Round, server: Server
    ) -> Step[FedAdamState]:
        """Return the Adam step."""
        first = self.beta_1 * state.first + (1 - self.beta_1) * update
        second_root = torch.hypot(
            math.sqrt(self.beta_2) * state.second_root, math.sqrt(1 - self.beta_2) * update
        )
        made = self.step_size * first / (second_root + self.tau)
        return Step(with_plain_statistics(made, update, round), FedAdamState(first, second_root))
