"""Fixed frequency: attackers from outside come every so many rounds."""

from dataclasses import dataclass
from typing import ClassVar

from datadefense.core.settings import SettingsError, check_int, setting
from datadefense.schedules.base import Schedule


@dataclass(frozen=True, slots=True)
class FixedFrequency(Schedule):
    """Attackers from outside come every ``period`` rounds and take the places of honest clients.

    ``period=1`` is an attack in every round, ``last=first`` a single shot, ``last=t`` one that
    stops.
    """

    period: int = setting(5, "rounds from one attack to the next (1: every round)")
    first: int = setting(1, "round of the first attack")
    last: int | None = setting(None, "last round in which an attack may come; none: no end")
    attackers: int = setting(1, "attackers in an attacked round")

    name: ClassVar[str] = "fixed-frequency"

    def __post_init__(self) -> None:
        check_int("period", self.period, 1)
        check_int("first", self.first, 1)
        check_int("attackers", self.attackers, 1)
        if self.last is not None:
            check_int("last", self.last, self.first)

    def check(self, clients: int, slots: int) -> None:
        """Attackers must fit into a round."""
        Schedule.check(self, clients, slots)
        if self.attackers > slots:
            raise SettingsError(
                f"attackers must be <= clients_per_round, got {self.attackers} of {slots}"
            )

    def turn(self, index: int) -> int:
        """Return the number of the attack in round ``index``, from 0."""
        return (index - self.first) // self.period

    def outsiders(self, index: int) -> int:
        """Return the attackers of an attacked round, and 0 in the others."""
        over = self.last is not None and index > self.last
        attacked = not over and index >= self.first and (index - self.first) % self.period == 0
        return self.attackers if attacked else 0

    def last_attack(self) -> int | None:
        """Return the last round in which an attack may come."""
        return self.last
