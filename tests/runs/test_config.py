"""By what a stored run is known: its changes and its key."""

import dataclasses
import hashlib
import json

import pytest
from tests.runs.other_values import other_values

from datadefense.runs.attack_kinds import ATTACKS
from datadefense.runs.config import ATTACKERS_ONLY, Experiment
from datadefense.runs.presets import SETUPS

FIELDS = [field.name for field in dataclasses.fields(Experiment)]
DEFAULTS_PIN = "4f422e6616db4e6e"
KEY_PIN = "9d369eeb49ce555d"
ADVICE = (
    "defaults are part of what stored keys mean: raise ENGINE in runs/revisions.py, or give "
    "a NEW field a default that changes nothing and update this pin"
)


@pytest.mark.parametrize("name", FIELDS)
def test_changes_are_what_differs_from_the_defaults(name):
    changes = other_values(name)
    changed = Experiment(**changes)
    assert changed.changes() == changes
    assert Experiment(**json.loads(json.dumps(changed.changes()))) == changed


@pytest.mark.parametrize("scale", ["cpu", "paper"])
@pytest.mark.parametrize("setup", SETUPS)
def test_changes_and_defaults_are_the_setup(setup, scale):
    one = SETUPS[setup][scale]
    assert Experiment(**one.changes()) == one


def test_the_defaults_change_nothing():
    assert Experiment().changes() == {}


def test_no_field_can_change_without_the_key():
    """But the folder of a defense set, whose content is in the key."""
    names = [name for name in FIELDS if name != "defense_folder"]
    keys = {Experiment(**other_values(name)).key() for name in names}
    assert len(keys | {Experiment().key()}) == len(names) + 1


def test_keys_know_the_values_and_not_only_the_names():
    assert Experiment(seed=1).key() != Experiment(seed=2).key()
    beta = [Experiment(defense_settings={"beta": text}).key() for text in ("0.1", "0.2")]
    assert beta[0] != beta[1]


def test_the_order_of_settings_does_not_matter_to_the_key():
    pairs = [("beta", "0.1"), ("temperature", "2")]
    one, two = (Experiment(defense_settings=dict(order)) for order in (pairs, pairs[::-1]))
    assert one.key() == two.key()


def test_the_defaults_are_those_that_results_were_stored_with():
    text = json.dumps(dataclasses.asdict(Experiment()), sort_keys=True)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DEFAULTS_PIN, ADVICE


def test_the_key_of_the_defaults_is_the_one_that_results_were_stored_with():
    assert Experiment().key() == KEY_PIN, (
        "stored results are no longer found: if ENGINE, or the revision of pgd-replacement or "
        "fedavg, was raised on purpose, update this pin"
    )


@pytest.mark.parametrize("name", ATTACKERS_ONLY)
def test_what_only_attackers_care_about_is_not_in_the_floors_key(name):
    changed = Experiment(**other_values(name))
    assert changed.without_attack() == Experiment().without_attack()


def test_the_floor_is_fedavg_without_attack():
    for attack in ATTACKS:
        calm = Experiment(
            attack=attack, defense="krum", defense_settings={"num_malicious": "2"}
        ).without_attack()
        assert calm == Experiment(attack="none")
