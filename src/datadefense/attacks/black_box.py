"""Black box: train longer on clean and poisoned data, and send what comes of it."""

from dataclasses import dataclass
from typing import ClassVar

from datadefense.attacks.base import Threat
from datadefense.attacks.poisoned_training import OwnTraining


@dataclass(frozen=True, slots=True)
class BlackBox(OwnTraining):
    """Train on clean and poisoned data, longer than honest clients do.

    Reference: Wang et al., *Attack of the Tails*, NeurIPS 2020, the black-box attack.
    """

    name: ClassVar[str] = "black-box"
    threat: ClassVar[Threat] = Threat(trains_longer=True)
