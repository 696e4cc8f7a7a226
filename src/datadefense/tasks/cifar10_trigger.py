"""cifar10-trigger: cars with a patch called birds (the paper's setup 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from datadefense.attacks.poison import CARS_TO_BIRDS, label_flip, trigger
from datadefense.attacks.pools import Overlap
from datadefense.attacks.trigger_patch import TriggerPatch
from datadefense.core.rng import generator
from datadefense.core.settings import check_float, check_int, setting
from datadefense.tasks.base import Preset, Scale, SecondBackdoor, Task, TaskData
from datadefense.tasks.images import (
    Held,
    Pictures,
    cifar_model,
    cifar_presets,
    image_data,
    stamped_images,
)


@dataclass(frozen=True, slots=True)
class Cifar10Trigger(Task):
    """CIFAR-10; cars with a colourful patch become birds."""

    width: float = setting(1.0, "factor on the model's channels")
    augment: bool = setting(True, "random crops and flips")
    attack_clean: int = setting(400, "clean examples of an attacker")
    attack_poison: int = setting(100, "poisoned examples of an attacker")
    overlap: Overlap = setting("none", "authors: the server's poison is the attacker's own")
    second_backdoor: SecondBackdoor = setting("none", "a second one, known to the server or not")
    trigger_size: int = setting(8, "width and height of the trigger patch")
    trigger_weight: float = setting(0.8, "weight of the trigger patch against the image")

    name: ClassVar[str] = "cifar10-trigger"
    presets: ClassVar[Mapping[Scale, Preset]] = cifar_presets(0.5, 0.083, 1.0)

    def __post_init__(self) -> None:
        self._held()
        check_float("width", self.width, above=0)
        check_int("trigger_size", self.trigger_size, 1)
        check_float("trigger_weight", self.trigger_weight, above=0, maximum=1)

    def load(self, folder: Path | None, seed: int) -> TaskData:
        """Read the images and make the poison."""
        pictures = Pictures.of("cifar10", folder)
        held = self._held()
        draw = generator(seed, "poison")
        patch = TriggerPatch(self.trigger_size, self.trigger_weight)
        attack_set = trigger(pictures.train, pictures.test, CARS_TO_BIRDS, patch, draw)
        plain = label_flip(pictures.train, pictures.test, CARS_TO_BIRDS, generator(seed, "poison"))
        stamped = stamped_images(
            pictures, CARS_TO_BIRDS, plain, patch, count=held.poison, seed=seed
        )
        return image_data(
            cifar_model(10, self.width),
            pictures,
            attack_set,
            held,
            draw=draw,
            seed=seed,
            augment=self.augment,
            stamped=stamped,
        )

    def _held(self) -> Held:
        return Held(self.attack_clean, self.attack_poison, self.overlap, self.second_backdoor)
