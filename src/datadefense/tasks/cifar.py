"""CIFAR tasks: a VGG-9 that takes pixels; what they have in common, and those with a trigger."""

from abc import abstractmethod
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch
from torch import nn

from datadefense.attacks.poison import AttackSet, Flip, label_flip, trigger
from datadefense.attacks.pools import Overlap
from datadefense.attacks.trigger_patch import TriggerPatch
from datadefense.core.rng import generator
from datadefense.core.settings import check_float, check_int, setting
from datadefense.tasks.base import Preset, Scale, SecondBackdoor, Task, TaskData
from datadefense.tasks.images import Held, Pictures, Stamped, image_data, stamped_images
from datadefense.tasks.models.normalised import Normalised
from datadefense.tasks.models.vgg9 import vgg9

CIFAR_MEAN, CIFAR_DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)


@dataclass(frozen=True, slots=True)
class CifarTask(Task):
    """A task on CIFAR: a subclass says which data set, and makes the poison."""

    width: float = setting(1.0, "factor on the model's channels")
    augment: bool = setting(True, "random crops and flips")
    attack_clean: int = setting(400, "clean examples of an attacker")
    attack_poison: int = setting(100, "poisoned examples of an attacker")
    overlap: Overlap = setting("none", "authors: the server's poison is the attacker's own")
    second_backdoor: SecondBackdoor = setting("none", "a second backdoor: none, known or unknown")

    dataset: ClassVar[str] = "cifar10"
    classes: ClassVar[int] = 10

    def __post_init__(self) -> None:
        self.held()
        check_float("width", self.width, above=0)

    def held(self) -> Held:
        """Return how many examples attackers hold."""
        return Held(self.attack_clean, self.attack_poison, self.overlap, self.second_backdoor)

    @abstractmethod
    def poison(
        self, pictures: Pictures, folder: Path | None, draw: torch.Generator, seed: int
    ) -> tuple[AttackSet, Stamped | None]:
        """Return the poison, and what a trigger was stamped on where there is one."""

    def load(self, folder: Path | None, seed: int) -> TaskData:
        """Read the images and make the poison."""
        pictures = Pictures.of(self.dataset, folder)
        draw = generator(seed, "poison")
        attack_set, stamped = self.poison(pictures, folder, draw, seed)
        return image_data(
            cifar_model(self.classes, self.width),
            pictures,
            attack_set,
            self.held(),
            draw=draw,
            seed=seed,
            augment=self.augment,
            stamped=stamped,
        )


@dataclass(frozen=True, slots=True)
class CifarTriggerTask(CifarTask):
    """A task on CIFAR whose poison has a patch: a subclass says which classes are turned."""

    trigger_size: int = setting(8, "width and height of the trigger patch")
    trigger_weight: float = setting(0.8, "weight of the trigger patch against the image")

    flip: ClassVar[Flip]

    def __post_init__(self) -> None:
        CifarTask.__post_init__(self)
        check_int("trigger_size", self.trigger_size, 1)
        check_float("trigger_weight", self.trigger_weight, above=0, maximum=1)

    def poison(
        self, pictures: Pictures, folder: Path | None, draw: torch.Generator, seed: int
    ) -> tuple[AttackSet, Stamped | None]:
        """Return images of the source classes with the patch."""
        patch = TriggerPatch(self.trigger_size, self.trigger_weight)
        attack_set = trigger(pictures.train, pictures.test, self.flip, patch, draw)
        plain = label_flip(pictures.train, pictures.test, self.flip, generator(seed, "poison"))
        count = self.held().poison
        stamped = stamped_images(pictures, self.flip, plain, patch, count=count, seed=seed)
        return attack_set, stamped


def cifar_model(classes: int, width: float) -> nn.Module:
    """Return a VGG-9 that takes pixels."""
    return Normalised(vgg9(classes, width), CIFAR_MEAN, CIFAR_DEVIATION)


def cifar_presets(
    radius: float, replacement: float, cpu_radius: float, warm: tuple[float, float] = (72.0, 76.08)
) -> dict[Scale, Preset]:
    """Return what suits a CIFAR task: the paper's radii and ours, the first model's accuracies."""
    paper: Preset = {
        "warm": {"accuracy_percent": warm[1], "learning_rate": 0.02, "batch_size": 128},
        "federation": {
            "rounds": 1500,
            "clients": 200,
            "partition": "dirichlet",
            "learning_rate": 0.001,
            "decay": 0.998,
        },
        "attack": {
            "epochs": 2,
            "learning_rate": 0.02,
            "radius": radius,
            "replacement_radius": replacement,
            "radius_decay": 0.998,
        },
        "schedule": {"period": 10},
        "evaluation": {"evaluate_every": 10, "checkpoint_every": 10},
    }
    cpu: Preset = {
        "task": {"width": 0.25},
        "warm": {**paper["warm"], "accuracy_percent": warm[0], "batch_size": 64},
        "federation": {**paper["federation"], "rounds": 30},
        "attack": {
            "epochs": 5,
            "learning_rate": 0.02,
            "radius": cpu_radius,
            "replacement_radius": cpu_radius,
        },
        "schedule": {"period": 5},
        "evaluation": {"test_examples": 5000, "evaluate_every": 3, "checkpoint_every": 5},
    }
    return {"cpu": cpu, "paper": paper}
