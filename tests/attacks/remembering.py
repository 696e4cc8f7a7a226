"""An attack with a memory of every kind that a checkpoint can hold, on which its updates depend."""

from dataclasses import dataclass, field
from typing import ClassVar

import torch
from torch import Tensor

from datadefense.attacks.poisoned_training import OwnTraining


@dataclass(frozen=True)
class Memory:
    rounds: tuple[int, ...]
    total: Tensor
    lengths: dict[int, float] = field(default_factory=dict)
    last: Tensor | None = None


@dataclass(frozen=True)
class Remembering(OwnTraining):
    """Adds a half of the mean of all that was sent before, and keeps the models it was shown."""

    name: ClassVar[str] = "remembering"

    def init(self, start):
        return Memory((), torch.zeros_like(start))

    def remember(self, state, sent, context):
        return Memory(
            (*state.rounds, context.index),
            state.total + sent.mean(0),
            {**state.lengths, context.index: float(sent.norm())},
            context.start,  # not a copy: what is shown may be kept
        )

    def finish(self, update, trainer, data, context):
        memory = context.state
        return update + 0.5 * memory.total / max(1, len(memory.rounds))


@dataclass(frozen=True)
class Counting(OwnTraining):
    """Begins with nothing, and then remembers a bare tensor."""

    name: ClassVar[str] = "counting"

    def remember(self, state, sent, context):
        return sent.sum(0) if state is None else state + sent.sum(0)

    def finish(self, update, trainer, data, context):
        return update if context.state is None else update - 0.1 * context.state


def same(one, other):
    """Whether two memories have the same bits."""
    if isinstance(one, Tensor):
        return torch.equal(one, other)
    plain = (one.rounds, one.lengths) == (other.rounds, other.lengths)
    return plain and torch.equal(one.total, other.total) and torch.equal(one.last, other.last)
