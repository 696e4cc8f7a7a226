"""TaskData: what a setup brings, dealt out: clean examples to one owner each, poison in pools."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from datadefense.attacks.base import AttackerData
from datadefense.core.examples import Examples
from datadefense.core.local_training import Augment
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.data.text import Vocabulary


@dataclass(frozen=True, slots=True)
class Aim:
    """What a backdoor turns into what.

    Args:
        sources: the classes that poisoned inputs really are.
        target: what the attacker wants them called.
    """

    sources: tuple[int, ...]
    target: int


@dataclass(frozen=True, slots=True, eq=False)
class TaskData:
    """The data of a run by holder, and the architecture that learns from it.

    Args:
        module: freshly initialised.
        warm: what the warm start is trained on.
        clients: examples of all honest clients together.
        attacker: what attackers hold.
        server_clean: clean examples of the server.
        server_poison: poisoned examples among which the server may find some.
        test: clean examples to judge by.
        backdoor_test: poisoned examples to judge by.
        augment: what is done to inputs in training.
        users: who made each of the clients' examples, where that is known.
        vocabulary: what tokens stand for, where inputs are texts.
        aim: what the backdoor turns into what.
        originals: training inputs that the attacker's poison was made of, where it was made.
    """

    module: nn.Module
    warm: Examples
    clients: Examples
    attacker: AttackerData
    server_clean: Examples
    server_poison: Examples
    test: Examples
    backdoor_test: Examples
    augment: Augment | None = None
    users: Sequence[str] | None = None
    vocabulary: Vocabulary | None = None
    aim: Aim | None = None
    originals: Tensor | None = None


def hands(count: int, sizes: list[int], seed: int) -> tuple[Tensor, ...]:
    """Deal out numbers below ``count`` at random: hands of the given sizes, the rest as the last.

    >>> [len(hand) for hand in hands(10, [2, 3], seed=0)]
    [2, 3, 5]
    """
    left = count - sum(sizes)
    if left < 1:
        raise SettingsError(f"{sum(sizes)} examples are spoken for, there are {count}")
    order = torch.randperm(count, generator=generator(seed, "deal"))
    return torch.split(order, [*sizes, left])


def deal(examples: Examples, sizes: list[int], seed: int) -> list[Examples]:
    """Deal out hands of the given sizes at random, and what is left as the last hand."""
    return [examples.take(hand) for hand in hands(len(examples), sizes, seed)]
