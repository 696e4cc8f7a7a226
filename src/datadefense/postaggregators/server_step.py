"""Server step: take a part of the update, or more than all of it."""

from dataclasses import dataclass
from typing import ClassVar

from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense import Promise
from datadefense.core.postaggregator import PostAggregator, Step
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, setting


@dataclass(frozen=True, slots=True)
class ServerStep(PostAggregator[None]):
    r"""Multiply the update by a step size of the server.

    .. math:: \bar\phi^t = \bar\phi^{t-1} + \eta\, u

    Weights of clients are multiplied by it too. A small step is itself a defense, so a result with
    one is not that of the rule alone. All of the vector is scaled, BatchNorm's statistics included.

    Reference: Reddi et al., *Adaptive Federated Optimization*, ICLR 2021, algorithm 1 with SGD as
    the server's optimiser.
    """

    step_size: float = setting(0.5, "step size eta of the server")

    name: ClassVar[str] = "server-step"
    keeps: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.WEIGHTED | Promise.TRANSLATES | Promise.BOUNDED
    )

    def __post_init__(self) -> None:
        check_float("step_size", self.step_size, above=0)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> None:
        """Return the empty state."""
        return

    def step(
        self, state: None, update: Float[Tensor, " dim"], round: Round, server: Server
    ) -> Step[None]:
        """Return the scaled update."""
        return Step(self.step_size * update, None, self.step_size)
