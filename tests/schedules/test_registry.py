"""Schedules by name: ours, those of other packages, and classes by their module."""

from dataclasses import dataclass
from importlib.metadata import EntryPoint
from typing import ClassVar

import pytest

from datadefense.core import registry
from datadefense.core.registry import about
from datadefense.core.settings import SettingsError
from datadefense.runs.configure import configure
from datadefense.schedules import REGISTRY, SCHEDULES, FixedPool, Schedule


@dataclass(frozen=True)
class Primes(Schedule):
    """An outsider comes in rounds with a prime number."""

    most: int = 100

    name: ClassVar[str] = "primes"

    def outsiders(self, index):
        return int(2 <= index <= self.most and all(index % d for d in range(2, index)))


OWN = f"{__name__}:Primes"


def test_a_third_partys_schedule_joins_by_entry_point(monkeypatch, datadefense_log):
    entries = [
        EntryPoint("primes", OWN, REGISTRY.group),
        EntryPoint("fixed-pool", OWN, REGISTRY.group),
        EntryPoint("broken", "no.such.module:Thing", REGISTRY.group),
    ]
    monkeypatch.setattr(
        registry, "entry_points", lambda group: entries if group == REGISTRY.group else []
    )
    assert REGISTRY.find("primes") is Primes
    assert REGISTRY.find("fixed-pool") is FixedPool
    assert list(REGISTRY) == [*SCHEDULES, "primes"]
    chosen = configure("digits-edge", "cpu", {"schedule": "primes", "most": "7"})
    assert chosen.schedule == Primes(7)
    assert chosen.name_of("schedule") == "primes"
    assert "the name 'fixed-pool' is taken" in datadefense_log.text
    assert "no.such.module:Thing: cannot be loaded" in datadefense_log.text


def test_a_schedule_of_ones_own_is_named_by_its_module():
    chosen = configure("digits-edge", "cpu", {"schedule": OWN, "schedule.most": "7"})
    assert chosen.schedule == Primes(7)
    assert chosen.name_of("schedule") == OWN


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
