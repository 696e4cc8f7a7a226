"""From a task and texts to an experiment."""

import pytest

from datadefense.attacks import ATTACKS, DataPoisoning, Drip, Oracle, Pgd, PgdReplacement
from datadefense.core.settings import SettingsError
from datadefense.runs.configure import change, configure
from datadefense.schedules import FixedFrequency, FixedPool, Never
from datadefense.tasks import TASKS


def digits(**changes):
    return configure("digits-edge", "cpu", changes)


def test_what_is_taken_where_nothing_is_said():
    plain = digits()
    assert (plain.name_of("attack"), plain.name_of("defense")) == ("pgd-replacement", "fedavg")
    assert plain.schedule == FixedFrequency(period=5)
    assert plain.rounds == 30


def test_a_share_of_malicious_clients_is_a_pool():
    assert digits(malicious="0.2").schedule == FixedPool(share=0.2)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"malicious": "0"}, "malicious must be > 0, got 0"),
        ({"malicious": "1.5"}, "malicious must be <= 1, got 1.5"),
        ({"malicious": "many"}, "malicious must be a number, got 'many'"),
        ({"malicious": "0.2", "schedule.share": "0.3"}, "malicious is the schedule's share"),
        ({"malicious": "0.2", "schedule": "never"}, "malicious sets the schedule already"),
    ],
)
def test_a_share_that_makes_no_sense_is_refused(changes, words):
    with pytest.raises(SettingsError, match=words):
        configure("digits-edge", "cpu", changes)


def test_keys_reach_every_part():
    changed = configure(
        "digits-edge",
        "cpu",
        {
            "attack": "drip",
            "attack.tolerance": "0.1",
            "reach": "2",
            "attack.slack": "0.05",
            "defense": "datadefense",
            "defense.slack": "0.01",
            "federation.epochs": "1",
            "attack.epochs": "7",
            "warm.seed": "3",
            "server.poison": "5",
            "evaluate_every": "2",
            "task.attack_poison": "50",
            "seed": "4",
        },
    )
    assert changed.attack == Drip(epochs=7, tolerance=0.1, reach=2.0, slack=0.05)
    assert changed.defense.slack == 0.01
    assert (changed.federation.epochs, changed.warm.seed, changed.seed) == (1, 3, 4)
    assert (changed.server.poison, changed.evaluation.evaluate_every) == (5, 2)
    assert changed.task.attack_poison == 50


@pytest.mark.parametrize("key", ["norm_bound", "defense.norm_bound", "ndc.norm_bound"])
def test_a_setting_that_one_part_of_a_composed_defense_has_needs_no_prefix(key):
    made = digits(defense="nnm+ndc", **{key: "3"})
    assert (made.defense.rule.norm_bound, made.defense.before[0].num_malicious) == (3.0, 1)
    changed = change(made, {key: "0.5"})
    assert changed.defense.rule.norm_bound == 0.5
    with pytest.raises(SettingsError, match="are the same setting: give one of them"):
        change(made, {key: "1", "defense.ndc.norm_bound": "2"})


def test_what_a_task_presets_counts_for_the_attack_that_has_the_setting():
    chosen = {
        name: configure("cifar10-southwest", "paper", {"attack": name}).attack for name in ATTACKS
    }
    assert chosen["pgd"] == Pgd(epochs=2, radius=1.5, radius_decay=0.998)
    assert chosen["pgd-replacement"] == PgdReplacement(
        epochs=2, replacement_radius=0.083, radius_decay=0.998
    )
    assert chosen["data-poisoning"] == DataPoisoning()
    assert chosen["oracle"] == Oracle(epochs=2)


def test_nobody_attacks():
    calm = digits(attack="none")
    assert (calm.attack, calm.schedule) == (None, Never())
    for key in ("attack.epochs", "schedule.period", "malicious", "schedule"):
        with pytest.raises(SettingsError, match=f"{key} does not apply: nobody attacks"):
            configure("digits-edge", "cpu", {"attack": "none", key: "1"})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"attack_epochs": "2"},
            "there is no setting 'attack_epochs', did you mean 'attack.epochs'",
        ),
        ({"federation.epohcs": "2"}, "federation has no setting 'epohcs', did you mean 'epochs'?"),
        ({"epochs": "2"}, "'epochs' is a setting of several parts: say"),
        (
            {"trigger_size": "3"},
            "task digits-edge has no setting 'trigger_size'; those that have it: cifar10-trigger",
        ),
        ({"model": "my:Net"}, "there is no setting 'model'"),
        ({"alpha": "0"}, "alpha must be > 0, got 0"),
        ({"replacement_radius": "-1"}, "radius must be >= 0, got -1"),
        (
            {"attack.radius": "1"},
            "attack pgd-replacement has no setting 'radius'; those that have it: pgd",
        ),
        ({"clients_per_round": "60"}, "clients_per_round must be in 1..clients, got 60 of 50"),
        ({"attack": "pdg"}, "no attack is called 'pdg', did you mean 'pgd'?"),
        ({"attackers": "0"}, "attackers must be >= 1, got 0"),
        ({"attackers": "11"}, "attackers must be <= clients_per_round, got 11 of 10"),
        ({"rounds": "0"}, "rounds must be >= 1, got 0"),
        ({"rounds": "x"}, "rounds must be an integer, got 'x'"),
        ({"test_examples": "-1"}, "test_examples must be >= 0, got -1"),
        ({"partition": "users"}, "partition must be iid or dirichlet or user, got 'users'"),
        ({"server.known_clean": "31", "server.clean": "30"}, "known_clean must be <= server.clean"),
        ({"server.known_clean": "0"}, "known_clean must be >= 1, got 0"),
        ({"server.poison": "-1"}, "server.poison must be >= 0, got -1"),
        ({"wrong_marks_percent": "101"}, "wrong_marks_percent must be <= 100, got 101"),
        ({"server.digest": "0123"}, "server.digest needs a server.folder"),
        ({"seed": "x"}, "seed must be an integer, got 'x'"),
    ],
)
def test_a_configuration_that_cannot_be(changes, message):
    with pytest.raises(SettingsError) as caught:
        configure("digits-edge", "cpu", changes)
    assert message in str(caught.value)


def test_unknown_tasks_and_scales():
    with pytest.raises(SettingsError, match="no task is called 'digit-edge', did you mean"):
        configure("digit-edge", "cpu", {})
    with pytest.raises(SettingsError, match="scale must be one of cpu, paper"):
        configure("digits-edge", "gpu", {})


@pytest.mark.parametrize("task", TASKS)
def test_every_preset_is_a_setting_of_something(task):
    """One that is misspelt would be passed over."""
    names = {"attack": set(), "schedule": set()}
    for found in ATTACKS.values():
        names["attack"] |= set(found.__dataclass_fields__)
    names["schedule"] = set(FixedFrequency.__dataclass_fields__)
    for preset in TASKS[task].presets.values():
        for part, values in preset.items():
            if part in names:
                assert set(values) <= names[part]
            else:
                current = getattr(configure(task, "cpu", {}), part)
                assert set(values) <= set(current.__dataclass_fields__)


def test_a_configuration_can_be_changed():
    base = configure("digits-edge", "cpu", {"attack": "pgd"})
    changed = change(base, {"attack.epochs": "9", "seed": "2", "rounds": "3"})
    assert (changed.attack, changed.seed, changed.rounds) == (Pgd(epochs=9), 2, 3)
    assert change(base, {}) == base
    with pytest.raises(SettingsError, match="attack is in the configuration file"):
        change(base, {"attack": "lie"})
