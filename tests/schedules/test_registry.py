"""Schedules by name: ours, those of other packages, and classes by their module."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from tests.plugin_registry import is_configured_by, joins_by_entry_point

from datadefense.core.registry import about
from datadefense.core.settings import SettingsError
from datadefense.schedules import REGISTRY, SCHEDULES, Schedule


@dataclass(frozen=True)
class Primes(Schedule):
    """An outsider comes in rounds with a prime number."""

    most: int = 100

    name: ClassVar[str] = "primes"

    def outsiders(self, index):
        return int(2 <= index <= self.most and all(index % d for d in range(2, index)))


OWN = f"{__name__}:Primes"


def test_a_third_partys_schedule_joins_by_entry_point(monkeypatch, datadefense_log):
    joins_by_entry_point(REGISTRY, Primes(7), "fixed-pool", monkeypatch, datadefense_log)


def test_a_schedule_of_ones_own_is_named_by_its_module():
    is_configured_by("schedule", Primes(7), OWN, "schedule.")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("fixed-pol", "no schedule is called 'fixed-pol', did you mean 'fixed-pool'?"),
        ("zzz", "no schedule is called 'zzz'; there are: fixed-frequency, fixed-pool, never"),
        ("datadefense.attacks:Pgd", "must be a class of schedules"),
    ],
)
def test_a_name_that_leads_nowhere(name, message):
    with pytest.raises(SettingsError, match=message):
        REGISTRY.find(name)


@pytest.mark.parametrize("name", SCHEDULES)
def test_each_of_ours_says_what_it_is(name):
    kind = SCHEDULES[name]
    assert REGISTRY.name_of(kind()) == kind.name == name
    assert about(kind).endswith(".")
