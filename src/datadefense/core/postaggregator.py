"""The post-aggregator protocol: the update that a defense chose in, the step to take out."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic

from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense import Promise
from datadefense.core.needs import Need
from datadefense.core.round import Round, StateT
from datadefense.core.server import Server


@dataclass(frozen=True, slots=True, eq=False)
class Step(Generic[StateT]):
    """What leaves a post-aggregator.

    Args:
        update: what is added to the global model, or goes to the next part.
        state: what it carries to the next round.
        factor: what it multiplied this round's update by, and with it the weights of clients; 1
            where the step is no multiple of the update.
        report: facts about the round as plain JSON values.
    """

    update: Float[Tensor, " dim"]
    state: StateT
    factor: float = 1.0
    report: Mapping[str, Any] = field(default_factory=dict)


class PostAggregator(ABC, Generic[StateT]):
    """One way to make a step of an update: ``datadefense.create("median+fedadam")``.

    A subclass is a frozen dataclass: its fields are its settings, the first line of its docstring
    is its help, and whatever it remembers is in the state. Where the defense kept the model, it is
    not asked: the model stays and so does its state.
    """

    __slots__ = ()
    name: ClassVar[str]
    needs: ClassVar[Need] = Need.NONE
    keeps: ClassVar[Promise] = Promise.NONE
    """Which promises of a defense still hold when this comes behind it."""

    @abstractmethod
    def init(self, server: Server, params: Float[Tensor, " dim"]) -> StateT:
        """Return the state before the first round."""

    @abstractmethod
    def step(
        self, state: StateT, update: Float[Tensor, " dim"], round: Round, server: Server
    ) -> Step[StateT]:
        """Return the step to take and the next state. Must not write to what it is given."""


def with_plain_statistics(
    step: Float[Tensor, " dim"], update: Float[Tensor, " dim"], round: Round
) -> Float[Tensor, " dim"]:
    """Return the step with the update as it is where the vector holds statistics (BatchNorm's).

    They are measured by clients, not descended on: momentum would carry them past every client's.
    The step is written to; a round without a layout is taken to have none.
    """
    for slot in round.layout.slots if round.layout is not None else ():
        if slot.carried:
            step[slot.start : slot.stop] = update[slot.start : slot.stop]
    return step
