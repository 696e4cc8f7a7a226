"""A task: model, clean data, poison and how honest clients hold it and train on it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch
from torch import Tensor, nn

from datadefense.attacks.base import AttackerData
from datadefense.core.examples import Examples
from datadefense.core.local_training import Augment
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.data.text import Vocabulary

Scale = Literal["cpu", "paper"]
SecondBackdoor = Literal["none", "known", "unknown"]
Preset = Mapping[str, Mapping[str, Any]]
"""Values by part of the configuration (``task``, ``warm``, ``federation``, ``attack``, ...)."""
Variant = Callable[[Examples, int], Examples]
"""``variant(poison, seed)``: the same poison in another look."""


@dataclass(frozen=True, slots=True)
class Aim:
    """What a backdoor turns into what.

    Args:
        sources: the classes that poisoned inputs really are.
        target: what the attacker wants them called.
    """

    sources: tuple[int, ...]
    target: int


@dataclass(frozen=True, slots=True)
class Scaling:
    """How pixels became inputs: (pixel / 255 - mean) / deviation."""

    mean: float
    deviation: float

    def pixels(self, inputs: Tensor) -> Tensor:
        """Return inputs as pixels again."""
        return ((inputs * self.deviation + self.mean) * 255).round().clamp(0, 255).to(torch.uint8)

    def inputs(self, pixels: Tensor) -> Tensor:
        """Return pixels as the model takes them."""
        return (pixels / 255 - self.mean) / self.deviation


@dataclass(frozen=True, slots=True, eq=False)
class TaskData:
    """The data of a task by holder, and the architecture that learns from it.

    Args:
        module: freshly initialised.
        warm: what the first model is trained on.
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
        scaling: how pixels became inputs, where inputs are images that are scaled in advance.
        variants: other looks of the poison, by name, for servers that found another kind.
        few_poisoned: there may be fewer poisoned examples for the server than it wants.
        second_backdoor: whether there is another at the same time, known to the server or not.
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
    scaling: Scaling | None = None
    variants: Mapping[str, Variant] = field(default_factory=dict)
    few_poisoned: bool = False
    second_backdoor: SecondBackdoor = "none"

    def as_stored(self, inputs: Tensor) -> Tensor:
        """Return inputs as a folder stores them: scaled images as pixels again."""
        return inputs if self.scaling is None else self.scaling.pixels(inputs)

    def as_input(self, stored: Tensor) -> Tensor:
        """Return stored inputs as the model takes them."""
        return stored if self.scaling is None else self.scaling.inputs(stored)


class Task(ABC):
    """A model, its data and a backdoor. A subclass is a frozen dataclass: fields are settings.

    ``presets`` has, for each scale, the values of other parts of a configuration that suit the
    task. Those of an attack or a schedule count for the fields that the chosen one has.
    """

    __slots__ = ()
    name: ClassVar[str]
    presets: ClassVar[Mapping[Scale, Preset]] = {"cpu": {}}

    def own_presets(self) -> Mapping[Scale, Preset]:
        """Return what suits this task with the settings that it has: by default, ``presets``."""
        return self.presets

    @abstractmethod
    def load(self, folder: Path | None, seed: int) -> TaskData:
        """Read the data and deal it out to its holders, by the seed.

        ``folder`` is where data sets are; None: wherever the environment says. torch's own
        randomness is seeded by the caller, so that the module's first values are the same always.
        """


def split_rows(count: int, sizes: Sequence[int], seed: int) -> tuple[Tensor, ...]:
    """Split the numbers below ``count`` at random: parts of the given sizes, the rest as the last.

    >>> [len(part) for part in split_rows(10, [2, 3], seed=0)]
    [2, 3, 5]
    """
    left = count - sum(sizes)
    if left < 1:
        raise SettingsError(
            f"the parts must leave an example: {' + '.join(map(str, sizes))} < {count} examples"
        )
    order = torch.randperm(count, generator=generator(seed, "deal"))
    return torch.split(order, [*sizes, left])


def split_examples(examples: Examples, sizes: Sequence[int], seed: int) -> list[Examples]:
    """Split examples at random: parts of the given sizes, and what is left as the last."""
    return [examples.take(rows) for rows in split_rows(len(examples), sizes, seed)]
