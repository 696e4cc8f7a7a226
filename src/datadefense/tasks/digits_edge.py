"""digits-edge: MNIST digits, strange sevens called 1, a LeNet; all of it comes with the package."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from datadefense.attacks.base import AttackerData
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError, check_int, setting
from datadefense.data.digits import DEVIATION, EDGE_CLASS, MEAN, TARGET_CLASS, load_digits_edge
from datadefense.tasks.base import (
    Aim,
    Preset,
    Scale,
    Scaling,
    SecondBackdoor,
    Task,
    TaskData,
    split_examples,
)
from datadefense.tasks.models.lenet import lenet

WARM, SERVER = 800, 400
"""Of the 4,000 digits to train on: for the first model, and for the server."""
FEWEST_LEFT = 100
"""Strange sevens that are left for server and test, at the least."""
PRESET: Preset = {
    "warm": {"accuracy_percent": 83.0, "learning_rate": 0.01, "batch_size": 32},
    "federation": {"clients": 50, "partition": "dirichlet"},
}


@dataclass(frozen=True, slots=True)
class DigitsEdge(Task):
    """MNIST digits; a strange seven (UCI digits) becomes a 1. Needs no data folder."""

    attack_clean: int = setting(100, "clean examples of an attacker")
    attack_poison: int = setting(66, "poisoned examples of an attacker")
    second_backdoor: SecondBackdoor = setting("none", "a second backdoor: none, known or unknown")

    name: ClassVar[str] = "digits-edge"
    presets: ClassVar[Mapping[Scale, Preset]] = {"cpu": PRESET, "paper": PRESET}

    def __post_init__(self) -> None:
        check_int("attack_clean", self.attack_clean, 0)
        check_int("attack_poison", self.attack_poison, 1)

    def load(self, folder: Path | None, seed: int) -> TaskData:
        """Deal digits and strange sevens; the first model has digits that are nobody's."""
        digits = load_digits_edge(seed)
        warm, server, attacker, clients = split_examples(
            digits.train, [WARM, SERVER, self.attack_clean], seed
        )
        strange = torch.randperm(len(digits.edge_case), generator=generator(seed, "poison"))
        poison = self.attack_poison
        if poison > len(strange) - FEWEST_LEFT:
            most = len(strange) - FEWEST_LEFT
            raise SettingsError(f"attack_poison must be <= {most}, got {poison}")
        half = poison + (len(strange) - poison) // 2
        return TaskData(
            module=lenet(),
            warm=warm,
            clients=clients,
            attacker=AttackerData(attacker, digits.edge_case.take(strange[:poison])),
            server_clean=server,
            server_poison=digits.edge_case.take(strange[poison:half]),
            test=digits.test,
            backdoor_test=digits.edge_case.take(strange[half:]),
            aim=Aim((EDGE_CLASS,), TARGET_CLASS),
            scaling=Scaling(MEAN, DEVIATION),
            few_poisoned=True,
            second_backdoor=self.second_backdoor,
        )
