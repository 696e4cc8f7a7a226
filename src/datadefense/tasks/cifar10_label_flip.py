"""cifar10-label-flip: cars called birds, without any trigger (the paper's setup 1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from datadefense.attacks.poison import CARS_TO_BIRDS, label_flip
from datadefense.attacks.pools import Overlap
from datadefense.core.rng import generator
from datadefense.core.settings import check_float, setting
from datadefense.tasks.base import Preset, Scale, SecondBackdoor, Task, TaskData
from datadefense.tasks.images import (
    Held,
    Pictures,
    cifar_model,
    cifar_presets,
    image_data,
)


@dataclass(frozen=True, slots=True)
class Cifar10LabelFlip(Task):
    """CIFAR-10; ordinary cars become birds."""

    width: float = setting(1.0, "factor on the model's channels")
    augment: bool = setting(True, "random crops and flips")
    attack_clean: int = setting(400, "clean examples of an attacker")
    attack_poison: int = setting(100, "poisoned examples of an attacker")
    overlap: Overlap = setting("none", "authors: the server's poison is the attacker's own")
    second_backdoor: SecondBackdoor = setting("none", "a second one, known to the server or not")

    name: ClassVar[str] = "cifar10-label-flip"
    presets: ClassVar[Mapping[Scale, Preset]] = cifar_presets(2.0, 2.0, 2.0)

    def __post_init__(self) -> None:
        self._held()
        check_float("width", self.width, above=0)

    def load(self, folder: Path | None, seed: int) -> TaskData:
        """Read the images and make the poison."""
        pictures = Pictures.of("cifar10", folder)
        held = self._held()
        draw = generator(seed, "poison")
        attack_set = label_flip(pictures.train, pictures.test, CARS_TO_BIRDS, draw)
        return image_data(
            cifar_model(10, self.width),
            pictures,
            attack_set,
            held,
            draw=draw,
            seed=seed,
            augment=self.augment,
        )

    def _held(self) -> Held:
        return Held(self.attack_clean, self.attack_poison, self.overlap, self.second_backdoor)
