"""emnist-ardis: digits, old Swedish sevens called 1 (the paper's setup 5)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Literal

import torch

from datadefense.attacks.poison import ONE, SEVEN, AttackSet, ardis_sevens, edge_case
from datadefense.attacks.pools import Overlap
from datadefense.core.rng import generator
from datadefense.core.settings import setting
from datadefense.data.digits import uci_sevens
from datadefense.tasks.base import Preset, Scale, SecondBackdoor, Task, TaskData
from datadefense.tasks.images import Held, Pictures, both_parts, image_data
from datadefense.tasks.models.mnist_net import mnist_net
from datadefense.tasks.models.normalised import Normalised

DIGIT_MEAN, DIGIT_DEVIATION = (0.1307,), (0.3081,)
PAPER: dict[str, dict[str, Any]] = {
    "warm": {"accuracy_percent": 88.0, "learning_rate": 0.01, "batch_size": 64},
    "federation": {
        "rounds": 1500,
        "clients": 3383,
        "clients_per_round": 30,
        "partition": "dirichlet",
        "epochs": 5,
        "learning_rate": 0.001,
        "decay": 0.998,
    },
    "attack": {"epochs": 5, "learning_rate": 0.02, "radius": 1.0, "replacement_radius": 2.0},
    "schedule": {"period": 10},
    "evaluation": {"evaluate_every": 10, "checkpoint_every": 10},
}
CPU: Preset = {
    **PAPER,
    "federation": {
        **PAPER["federation"],
        "rounds": 30,
        "clients": 600,
        "epochs": 1,
        "learning_rate": 0.01,
        "decay": 1.0,
    },
    "schedule": {"period": 5},
    "evaluation": {"evaluate_every": 5, "checkpoint_every": 5},
}


@dataclass(frozen=True, slots=True)
class EmnistArdis(Task):
    """EMNIST digits; sevens of ARDIS (Swedish church books) become ones."""

    dataset: Literal["emnist-digits", "mnist"] = setting("emnist-digits", "data set of the digits")
    sevens: Literal["ardis", "uci"] = setting("ardis", "data set of the sevens that are called 1")
    attack_clean: int = setting(100, "clean examples of an attacker")
    attack_poison: int = setting(66, "poisoned examples of an attacker")
    overlap: Overlap = setting("none", "authors: the server's poison is the attacker's own")
    second_backdoor: SecondBackdoor = setting("none", "a second backdoor: none, known or unknown")

    name: ClassVar[str] = "emnist-ardis"
    presets: ClassVar[Mapping[Scale, Preset]] = {"cpu": CPU, "paper": PAPER}

    def __post_init__(self) -> None:
        self._held()

    def load(self, folder: Path | None, seed: int) -> TaskData:
        """Read the digits and the sevens."""
        pictures = Pictures.of(self.dataset, folder)
        draw = generator(seed, "poison")
        return image_data(
            Normalised(mnist_net(10), DIGIT_MEAN, DIGIT_DEVIATION),
            pictures,
            self._sevens(folder, draw),
            self._held(),
            draw=draw,
            seed=seed,
            augment=False,
            few_poisoned=self.sevens == "uci",
        )

    def _sevens(self, folder: Path | None, draw: torch.Generator) -> AttackSet:
        if self.sevens == "ardis":
            return ardis_sevens(*both_parts("ardis", folder))
        strange = (255 * uci_sevens()).round().to(torch.uint8)
        strange = strange[torch.randperm(len(strange), generator=draw)]
        half = self.attack_poison + (len(strange) - self.attack_poison) // 2
        return edge_case(strange[:half], strange[half:], ONE, sources=(SEVEN,))

    def _held(self) -> Held:
        return Held(self.attack_clean, self.attack_poison, self.overlap, self.second_backdoor)
