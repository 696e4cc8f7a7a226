"""An attack: how a malicious client makes its update from what it holds and knows."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.collusion import Plot, View
from datadefense.core.examples import Examples
from datadefense.core.foreign import plain_integer
from datadefense.core.gate import MOST_EXAMPLES
from datadefense.core.local_training import Augment, Loss, Sgd, Trainer, plain_loss
from datadefense.core.rng import derive_seed, generator


@dataclass(frozen=True, slots=True, eq=False)
class AttackContext:
    """What an attacker knows when its round begins.

    Args:
        index: number of the round.
        start: the global model.
        previous: the global model of the round before; None in the first.
        num_examples: examples that all clients of the round claim together, as they are `counted`.
        attacker: which of the round's attackers this is, from 0, and of how many.
        training: how honest clients train, for attackers that copy them.
        augment: what honest clients do to their inputs.
        seed: root of the attacker's randomness.
        first: the model before the first round, which whoever took part in it has seen.
    """

    index: int
    start: Float[Tensor, " dim"]
    previous: Float[Tensor, " dim"] | None
    num_examples: int
    attacker: tuple[int, int]
    training: Sgd
    augment: Augment | None
    seed: int
    first: Float[Tensor, " dim"]

    def generator(self, *name: str | int) -> torch.Generator:
        """Return a generator of this attacker in this round."""
        return generator(self.seed, "attack", self.index, self.attacker[0], *name)


@dataclass(frozen=True, slots=True, eq=False)
class AttackerData:
    """What an attacker holds: clean examples of the task, and poisoned ones with their label.

    ``parts`` is the poison with only a part of the trigger in each. ``guess`` is the attacker's own
    copy of such data as the server may hold, clean and poisoned, for one who knows the defense.
    ``other`` is the poison of a second backdoor, planted in turns with the first.
    """

    clean: Examples
    poison: Examples
    parts: tuple[Examples, ...] = ()
    guess: tuple[Examples, Examples] | None = None
    other: Examples | None = None

    def in_turn(self, place: int) -> "AttackerData":
        """Return what this attack trains on: two backdoors take turns."""
        if self.other is None or place % 2 == 0:
            return self
        return replace(self, poison=self.other, other=None)

    def with_guess(self) -> "AttackerData":
        """Return the data with a third of the poison, and the clean examples, as the guess."""
        count = max(1, len(self.poison) // 3)
        index = torch.arange(len(self.poison))
        guess = (self.clean, self.poison.take(index[-count:]))
        return replace(self, poison=self.poison.take(index[:-count]), guess=guess)

    def mixed(self) -> Examples:
        """Return clean and poisoned examples together."""
        return self.clean.join(self.poison)


class Attack(ABC):
    """One way to make a malicious update. A subclass is a frozen dataclass of settings."""

    __slots__ = ()
    name: ClassVar[str]

    @abstractmethod
    def update(
        self, trainer: Trainer, attacker_data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Return the update that is sent."""

    def stand_ins(self, others: int) -> int:
        """Return how many honest trainings of its own it wants to see, beside ``others`` clients.

        Never fewer for more others.
        """
        return 0

    def collude(self, view: View) -> Plot | None:
        """Return what a round's attackers agree to send, seeing it all; None: each its own."""
        return None

    def num_examples(self, attacker_data: AttackerData) -> int:
        """Return the number of examples that is claimed."""
        return len(attacker_data.clean) + len(attacker_data.poison)

    def claim(self, attacker_data: AttackerData) -> Any:
        """Return what `num_examples` gives, or the exception it raises: it is for a gate to judge.

        An attacker may claim anything at all; see `counted`.
        """
        try:
            return self.num_examples(attacker_data)
        except Exception as error:
            return error


def counted(claim: Any) -> int:
    """Return a claim as a number to reckon with: 0 where it is none that any gate would pass.

    >>> counted(20), counted(0), counted(-5), counted(1e30), counted(10**30), counted("many")
    (20, 0, 0, 0, 0, 0)
    """
    number = plain_integer(claim)
    return number if number is not None and 1 <= number <= MOST_EXAMPLES else 0


class Twist:
    """What one attack does otherwise than plain poisoned training; override what differs.

    Poisoned data, local training with its ball, schedule and twist are independent choices.
    """

    __slots__ = ()

    def holdings(self, attacker_data: AttackerData, ordinary: int) -> AttackerData:
        """Return what the attacker holds, where an honest client has ``ordinary`` examples."""
        return attacker_data

    def examples(self, attacker_data: AttackerData, context: AttackContext) -> Examples:
        """Return what to train on."""
        return attacker_data.mixed()

    def radius(
        self, trainer: Trainer, attacker_data: AttackerData, context: AttackContext
    ) -> float | None:
        """Return the radius of the ball to stay in; None: the attack's own, if it has one."""
        return None

    def loss(self, trainer: Trainer, attacker_data: AttackerData, context: AttackContext) -> Loss:
        """Return what to descend; the module has the global parameters when this is called."""
        return plain_loss

    def before_step(self, trainer: Trainer, context: AttackContext) -> Callable[[], None] | None:
        """Return what to do to the gradients before each step."""
        return None

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        attacker_data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Return the update as it is sent, before any scaling."""
        return update

    def stand_ins(self, others: int) -> int:
        """Return how many honest trainings of its own the attack wants to see."""
        return 0

    def collude(self, view: View) -> Plot | None:
        """Return what the attackers of a round agree to send; None: each its own."""
        return None


@dataclass(frozen=True, slots=True)
class Plain(Twist):
    """No twist."""


def imitation(
    trainer: Trainer, attacker_data: AttackerData, context: AttackContext, number: int
) -> Float[Tensor, " dim"]:
    """Return the update of an honest client that the attacker imitates.

    It trains as honest clients do, on a half of its clean examples; each number has another half.
    """
    draw = context.generator("imitation", number)
    half = torch.randperm(len(attacker_data.clean), generator=draw)[
        : max(1, len(attacker_data.clean) // 2)
    ]
    trainer.load(context.start)
    trainer.train(context.training, attacker_data.clean.take(half), draw, augment=context.augment)
    return trainer.write_update(context.start, torch.empty_like(context.start))


def seed_module(context: AttackContext, *name: str | int) -> None:
    """Seed what a module draws itself (dropout), for this attacker, round and purpose."""
    torch.manual_seed(derive_seed(context.seed, "attack", context.index, *context.attacker, *name))
