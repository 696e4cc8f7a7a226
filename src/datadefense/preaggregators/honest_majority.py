"""Honest majority: pre-aggregators that assume f attackers in a round of n >= 2f + 1."""

from dataclasses import dataclass

from datadefense.core.defense import too_few
from datadefense.core.preaggregator import Mixer
from datadefense.core.settings import check_int, setting


@dataclass(frozen=True, slots=True)
class HonestMajority(Mixer):
    """A `Mixer` that is told how many attackers there may be, and needs n >= 2f + 1."""

    num_malicious: int = setting(1, "assumed number of attackers f in a round")

    def __post_init__(self) -> None:
        check_int("num_malicious", self.num_malicious, 0)

    def shortage(self, num_clients: int) -> str | None:
        """Honest clients must be the majority: n >= 2f + 1."""
        return too_few(self.name, num_clients, self.num_malicious, 2, 1)

    def assumed_malicious(self) -> int:
        """Return f."""
        return self.num_malicious
