"""An attack: how a malicious client makes its update from what it holds and knows."""

import enum
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.collusion import Plot, View
from datadefense.core.examples import Examples
from datadefense.core.foreign import plain_integer
from datadefense.core.gate import MOST_EXAMPLES
from datadefense.core.local_training import Augment, Sgd, Trainer
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
        clients: how many clients a round has.
        rate_factor: what is left of the first round's step sizes (they may decay).
        state: what the attack remembers; see `Attack.init`.
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
    clients: int
    rate_factor: float = 1.0
    state: Any = None

    def own_training(self, epochs: int, learning_rate: float) -> Sgd:
        """Return a training like that of honest clients, but for passes and step size."""
        rate = learning_rate * self.rate_factor
        return replace(self.training, epochs=epochs, learning_rate=rate)

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


class Sees(enum.Flag):
    """What attackers are shown beside the global model and their own data; nothing by default."""

    NOTHING = 0
    HONEST_UPDATES = enum.auto()
    """What the honest clients of the round send."""
    RULE = enum.auto()
    """The defense itself, to call it; not what it remembers or holds."""
    SERVER = enum.auto()
    """What the defense remembers, and the server's data."""


@dataclass(frozen=True, slots=True)
class Threat:
    """The threat model of an attack, for lists and tables.

    Args:
        knows: what the attacker must know, in a few words.
        attackers: how many it takes in a round, at the least.
        trains_longer: whether it takes more training than an honest client.
        scales: whether it sends more than it trained.
    """

    knows: str = "own data"
    attackers: int = 1
    trains_longer: bool = False
    scales: bool = False

    def words(self) -> str:
        """Return the threat model in one line.

        >>> Threat("honest updates", 2, trains_longer=True).words()
        'knows honest updates; 2 or more in a round; trains longer'
        """
        parts = [f"knows {self.knows}"]
        parts += [f"{self.attackers} or more in a round"] if self.attackers > 1 else []
        parts += ["trains longer"] if self.trains_longer else []
        parts += ["scales its update"] if self.scales else []
        return "; ".join(parts)


class Attack(ABC):
    """One way to make a malicious update. A subclass is a frozen dataclass: fields are settings.

    What it remembers from round to round is in a state that ``init`` makes and ``remember`` renews,
    once in each attacked round. It is saved in checkpoints, so it is made of frozen dataclasses,
    tuples, dicts, tensors, numbers, texts and None.
    """

    __slots__ = ()
    name: ClassVar[str]
    threat: ClassVar[Threat] = Threat()
    revision: ClassVar[int] = 1
    """Raised when the code begins to give other updates: stored runs are then run again."""

    @abstractmethod
    def update(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Return the update that is sent. ``trainer.layout`` has the names of the layers."""

    def holdings(self, data: AttackerData, usual: int) -> AttackerData:
        """Return what an attacker holds of the data, where an honest client has ``usual`` ones."""
        return data

    def sees(self) -> Sees:
        """Return what attackers are shown when they agree on what they send (`agree`)."""
        return Sees.NOTHING

    def init(self, start: Float[Tensor, " dim"]) -> Any:
        """Return the state before the first round; None: nothing is remembered."""
        return None

    def remember(
        self, state: Any, sent: Float[Tensor, "attackers dim"], context: AttackContext
    ) -> Any:
        """Return the next state, after a round in which the attackers sent these updates."""
        return state

    def honest_trainings(self, others: int) -> int:
        """Return how many honest trainings of its own it wants to see, beside ``others`` clients.

        Never fewer for more others.
        """
        return 0

    def agree(self, view: View) -> Plot | None:
        """Return what a round's attackers agree to send; None: each its own."""
        return None

    def num_examples(self, data: AttackerData) -> int:
        """Return the number of examples that is claimed."""
        return len(data.clean) + len(data.poison)

    def claim(self, data: AttackerData) -> Any:
        """Return what `num_examples` gives, or the exception it raises: it is for a gate to judge.

        An attacker may claim anything at all; see `counted`.
        """
        try:
            return self.num_examples(data)
        except Exception as error:
            return error


def counted(claim: Any) -> int:
    """Return a claim as a number to reckon with: 0 where it is none that any gate would pass.

    >>> counted(20), counted(0), counted(-5), counted(1e30), counted(10**30), counted("many")
    (20, 0, 0, 0, 0, 0)
    """
    number = plain_integer(claim)
    return number if number is not None and 1 <= number <= MOST_EXAMPLES else 0


def imitation(
    trainer: Trainer, data: AttackerData, context: AttackContext, number: int
) -> Float[Tensor, " dim"]:
    """Return the update of an honest client that the attacker imitates.

    It trains as honest clients do, on a half of its clean examples; each number has another half.
    """
    draw = context.generator("imitation", number)
    half = torch.randperm(len(data.clean), generator=draw)[: max(1, len(data.clean) // 2)]
    trainer.load(context.start)
    trainer.train(context.training, data.clean.take(half), draw, augment=context.augment)
    return trainer.write_update(context.start, torch.empty_like(context.start))


def seed_module(context: AttackContext, *name: str | int) -> None:
    """Seed what a module draws itself (dropout), for this attacker, round and purpose."""
    torch.manual_seed(derive_seed(context.seed, "attack", context.index, *context.attacker, *name))
