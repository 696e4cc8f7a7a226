"""Data poisoning: an ordinary client, some of whose examples carry the attacker's label."""

from dataclasses import dataclass, replace
from typing import ClassVar

import torch

from datadefense.attacks.base import AttackerData, Threat
from datadefense.attacks.poisoned_training import PoisonedTraining
from datadefense.core.settings import SettingsError, check_float, setting


@dataclass(frozen=True, slots=True)
class DataPoisoning(PoisonedTraining):
    """An ordinary client with a share of poisoned examples; trains as honest clients do.

    No scaling, no ball, no longer training: the update differs from an honest one only in what was
    learned. The most natural attacker, and the hardest to see in the updates alone.
    """

    poison_share: float = setting(0.2, "share of the attacker's examples that is poisoned")

    name: ClassVar[str] = "data-poisoning"
    threat: ClassVar[Threat] = Threat()

    def __post_init__(self) -> None:
        check_float("poison_share", self.poison_share, above=0, maximum=1)

    def holdings(self, data: AttackerData, usual: int) -> AttackerData:
        """Return as many of the examples as an honest client holds, or as many as there are.

        Where there are too few clean or poisoned ones for that, the share stays as it is.
        """
        for held in range(usual, 0, -1):
            poison = max(1, round(self.poison_share * held))
            clean = max(0, held - poison)
            if poison <= len(data.poison) and clean <= len(data.clean):
                return replace(
                    data,
                    clean=data.clean.take(torch.arange(clean)),
                    poison=data.poison.take(torch.arange(poison)),
                )
        raise SettingsError(
            f"poisoned examples of the attacker must be >= 1, got {len(data.poison)}"
        )
