"""Data poisoning: an ordinary client, some of whose examples carry the attacker's label."""

from dataclasses import dataclass, replace

import torch

from datadefense.attacks.base import AttackerData, Twist
from datadefense.core.settings import SettingsError, check_float, setting


@dataclass(frozen=True, slots=True)
class OrdinaryPoisoner(Twist):
    """Hold as many examples as an honest client, a share of them poisoned, and train as honest do.

    No scaling, no ball, no longer training: the update differs from an honest one only in what was
    learned. The most natural attacker, and the hardest to see in the updates alone.
    """

    share: float = setting(0.2, "share of the attacker's examples that is poisoned")

    def __post_init__(self) -> None:
        check_float("share", self.share, above=0, maximum=1)

    def holdings(self, attacker_data: AttackerData, ordinary: int) -> AttackerData:
        """Return as much of the attacker_data as an ordinary client holds."""
        poison = max(1, round(self.share * ordinary))
        clean = max(0, ordinary - poison)
        for kind, wanted, there in (
            ("poisoned", poison, len(attacker_data.poison)),
            ("clean", clean, len(attacker_data.clean)),
        ):
            if wanted > there:
                raise SettingsError(
                    f"an ordinary client's {ordinary} examples with a share of {self.share:g} "
                    f"poisoned need {wanted} {kind} ones, the attacker has {there}"
                )
        return replace(
            attacker_data,
            clean=attacker_data.clean.take(torch.arange(clean)),
            poison=attacker_data.poison.take(torch.arange(poison)),
        )
