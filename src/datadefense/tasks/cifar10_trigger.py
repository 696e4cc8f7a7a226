"""cifar10-trigger: cars with a patch called birds (the paper's setup 3)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from datadefense.attacks.poison import CARS_TO_BIRDS, Flip
from datadefense.tasks.base import Preset, Scale
from datadefense.tasks.cifar import CifarTriggerTask, cifar_presets


@dataclass(frozen=True, slots=True)
class Cifar10Trigger(CifarTriggerTask):
    """CIFAR-10; cars with a colourful patch become birds."""

    name: ClassVar[str] = "cifar10-trigger"
    presets: ClassVar[Mapping[Scale, Preset]] = cifar_presets(0.5, 0.083, 1.0)
    flip: ClassVar[Flip] = CARS_TO_BIRDS
