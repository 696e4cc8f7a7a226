"""cifar10-southwest: planes of one airline called trucks (the paper's setup 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from datadefense.attacks.poison import southwest
from datadefense.attacks.pools import Overlap
from datadefense.core.rng import generator
from datadefense.core.settings import check_float, setting
from datadefense.tasks.base import Preset, Scale, SecondBackdoor, Task, TaskData
from datadefense.tasks.images import (
    Held,
    Pictures,
    both_parts,
    cifar_model,
    cifar_presets,
    image_data,
)


@dataclass(frozen=True, slots=True)
class Cifar10Southwest(Task):
    """CIFAR-10; planes of Southwest Airlines become trucks."""

    width: float = setting(1.0, "factor on the model's channels")
    augment: bool = setting(True, "random crops and flips")
    attack_clean: int = setting(400, "clean examples of an attacker")
    attack_poison: int = setting(100, "poisoned examples of an attacker")
    overlap: Overlap = setting("none", "authors: the server's poison is the attacker's own")
    second_backdoor: SecondBackdoor = setting("none", "a second one, known to the server or not")

    name: ClassVar[str] = "cifar10-southwest"
    presets: ClassVar[Mapping[Scale, Preset]] = cifar_presets(1.5, 0.083, 1.0)

    def __post_init__(self) -> None:
        self._held()
        check_float("width", self.width, above=0)

    def load(self, folder: Path | None, seed: int) -> TaskData:
        """Read the images and make the poison."""
        pictures = Pictures.of("cifar10", folder)
        held = self._held()
        draw = generator(seed, "poison")
        train, test = both_parts("southwest", folder, duplicates="keep")
        attack_set = southwest(train.inputs, test.inputs)
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
