"""cifar100-trigger: fish with a patch called babies (the paper's setup 4)."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from datadefense.attacks.poison import FISH_TO_BABIES, Flip
from datadefense.tasks.base import Preset, Scale
from datadefense.tasks.cifar import CifarTriggerTask, cifar_presets


@dataclass(frozen=True, slots=True)
class Cifar100Trigger(CifarTriggerTask):
    """CIFAR-100; fish with a colourful patch become babies."""

    name: ClassVar[str] = "cifar100-trigger"
    presets: ClassVar[Mapping[Scale, Preset]] = cifar_presets(0.5, 0.083, 1.0, warm=(25.0, 50.43))
    dataset: ClassVar[str] = "cifar100"
    classes: ClassVar[int] = 100
    flip: ClassVar[Flip] = FISH_TO_BABIES
