"""Ablations: the default with one thing taken out or put in, each a class that says which."""

from dataclasses import dataclass
from typing import ClassVar

from datadefense.defenses.datadefense.learned import Corner, DataDefenseLearned

UNBOUNDED = 1e9


@dataclass(frozen=True, slots=True)
class NoFirstMargins(DataDefenseLearned):
    """The detector learns from the present model's margins only."""

    first_share: ClassVar[float] = 0.0


@dataclass(frozen=True, slots=True)
class OnlyFirstMargins(DataDefenseLearned):
    """The detector learns from the first model's margins only."""

    first_share: ClassVar[float] = 1.0


@dataclass(frozen=True, slots=True)
class NoExcuses(DataDefenseLearned):
    """A fault that the whole round shares counts in full."""

    excuses: ClassVar[tuple[float, float]] = (0.0, 0.0)


@dataclass(frozen=True, slots=True)
class AllExcuses(DataDefenseLearned):
    """A fault that the whole round shares is excused, however great."""

    excuses: ClassVar[tuple[float, float]] = (UNBOUNDED, UNBOUNDED)


@dataclass(frozen=True, slots=True)
class WideBox(DataDefenseLearned):
    """Theta may be anything from 0 to 10, where it also starts."""

    box: ClassVar[tuple[Corner, Corner]] = ((0.0, 0.0, 0.0), (10.0, 10.0, 10.0))


@dataclass(frozen=True, slots=True)
class WithoutCleanFault(DataDefenseLearned):
    """Getting worse on clean examples costs nothing."""

    box: ClassVar[tuple[Corner, Corner]] = ((0.0, 1.5, 0.1), (0.0, 2.0, 0.3))


@dataclass(frozen=True, slots=True)
class WithoutPoisonFault(DataDefenseLearned):
    """Learning poisoned labels costs nothing."""

    box: ClassVar[tuple[Corner, Corner]] = ((0.1, 0.0, 0.1), (0.3, 0.0, 0.3))


@dataclass(frozen=True, slots=True)
class WithoutDistanceFault(DataDefenseLearned):
    """Moving far costs nothing."""

    box: ClassVar[tuple[Corner, Corner]] = ((0.1, 1.5, 0.0), (0.3, 2.0, 0.0))


@dataclass(frozen=True, slots=True)
class NoConsistency(DataDefenseLearned):
    """Eq. 11 only at the start, as the paper has it."""

    consistent: ClassVar[bool] = False


@dataclass(frozen=True, slots=True)
class RisesCount(DataDefenseLearned):
    """A rise of the loss on one poisoned example makes up for a fall on another."""

    most_rise: ClassVar[float] = UNBOUNDED
