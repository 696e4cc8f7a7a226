"""cifar10-label-flip: cars called birds, without any trigger (the paper's setup 1)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

import torch

from datadefense.attacks.poison import CARS_TO_BIRDS, AttackSet, label_flip
from datadefense.tasks.base import Preset, Scale
from datadefense.tasks.cifar import CifarTask, cifar_presets
from datadefense.tasks.images import Pictures, Stamped


@dataclass(frozen=True, slots=True)
class Cifar10LabelFlip(CifarTask):
    """CIFAR-10; ordinary cars become birds."""

    name: ClassVar[str] = "cifar10-label-flip"
    presets: ClassVar[Mapping[Scale, Preset]] = cifar_presets(2.0, 2.0, 2.0)

    def poison(
        self, pictures: Pictures, folder: Path | None, draw: torch.Generator, seed: int
    ) -> tuple[AttackSet, Stamped | None]:
        """Return cars with the label of birds."""
        return label_flip(pictures.train, pictures.test, CARS_TO_BIRDS, draw), None
