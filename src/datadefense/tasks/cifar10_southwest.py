"""cifar10-southwest: planes of one airline called trucks (the paper's setup 2)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from datadefense.attacks.poison import AttackSet, southwest
from datadefense.tasks.base import Preset, Scale
from datadefense.tasks.cifar import CifarTask, cifar_presets
from datadefense.tasks.images import Pictures, Stamped, both_parts


@dataclass(frozen=True, slots=True)
class Cifar10Southwest(CifarTask):
    """CIFAR-10; planes of Southwest Airlines become trucks."""

    name: ClassVar[str] = "cifar10-southwest"
    presets: ClassVar[Mapping[Scale, Preset]] = cifar_presets(1.5, 0.083, 1.0)

    def poison(
        self, pictures: Pictures, folder: Path | None, draw: torch.Generator, seed: int
    ) -> tuple[AttackSet, Stamped | None]:
        """Return photos of the airline's planes, with the label of trucks."""
        train, test = both_parts("southwest", folder, duplicates="keep")
        return southwest(train.inputs, test.inputs), None
