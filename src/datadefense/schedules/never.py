"""Never: nobody attacks."""

from dataclasses import dataclass
from typing import ClassVar

from datadefense.schedules.base import Schedule


@dataclass(frozen=True, slots=True)
class Never(Schedule):
    """No attacker ever comes."""

    name: ClassVar[str] = "never"
