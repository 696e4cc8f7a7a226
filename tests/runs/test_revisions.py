"""A raised revision gives the runs that it concerns another key, and no others."""

import pytest

from datadefense.defenses import DEFENSES
from datadefense.runs import revisions
from datadefense.runs.attack_kinds import ATTACKS
from datadefense.runs.config import Experiment
from datadefense.runs.revisions import ENGINE, revision

RUNS = [Experiment(attack=a, defense=d) for a in ("none", "pgd") for d in ("fedavg", "krum")]


def renamed(before):
    return [run for run, key in zip(RUNS, before, strict=True) if run.key() != key]


@pytest.fixture
def before():
    return [run.key() for run in RUNS]


def test_names_of_revisions_are_names_of_attacks_and_defenses():
    """One that is misspelt would stand for nothing."""
    assert set(revisions.ATTACKS) <= set(ATTACKS)
    assert set(revisions.DEFENSES) <= set(DEFENSES)


def test_what_has_no_revision_of_its_own_has_1():
    assert revision("none", "mine:Own") == [ENGINE, 1, 1]


def test_the_engine_concerns_all_runs(before, monkeypatch):
    monkeypatch.setattr(revisions, "ENGINE", ENGINE + 1)
    assert renamed(before) == RUNS


def test_an_attack_concerns_its_runs(before, monkeypatch):
    monkeypatch.setattr(revisions, "ATTACKS", {"pgd": 9})
    assert renamed(before) == [run for run in RUNS if run.attack == "pgd"]


def test_a_defense_concerns_its_runs(before, monkeypatch):
    monkeypatch.setattr(revisions, "DEFENSES", {"krum": 9})
    assert renamed(before) == [run for run in RUNS if run.defense == "krum"]
