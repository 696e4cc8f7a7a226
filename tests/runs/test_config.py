"""By what a stored run is known: its changes and its key."""

import dataclasses
import hashlib
import json
from typing import ClassVar, Literal, get_args, get_origin, get_type_hints

import pytest

from datadefense import attacks, defenses, schedules, tasks
from datadefense.attacks import ATTACKS
from datadefense.core.settings import SettingsError
from datadefense.defenses import DEFENSES
from datadefense.runs import config
from datadefense.runs.config import (
    ORDER,
    PLAIN,
    Experiment,
    experiment_of,
    parse_toml,
    read_toml,
    write_toml,
)
from datadefense.runs.configure import configure
from datadefense.runs.parts import ONLY_LAST_BITS, ServerSettings
from datadefense.schedules import SCHEDULES, FixedFrequency
from datadefense.tasks import TASKS

DEFAULTS_PIN = "3736b2d59310af83"
KEY_PIN = "e343911324ff27a7"
ADVICE = (
    "defaults are part of what stored keys mean: raise ENGINE in runs/config.py or the plug-in's "
    "revision, or give a NEW setting a default that changes nothing and update this pin"
)
PLUGINS = {"task": TASKS, "attack": ATTACKS, "schedule": SCHEDULES, "defense": DEFENSES}
WORDS = {
    "poison_view": "recoloured",
    "folder": "my-set",
    "digest": "0123456789abcdef",
    "processor": "a 486",
}


def other(name, value, hint):
    """Another value that a setting may have."""
    if name in WORDS:
        return WORDS[name]
    if get_origin(hint) is Literal:
        return next(choice for choice in get_args(hint) if choice != value)
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value - 1 if value > 1 else value + 1
    if isinstance(value, float):
        return value / 2 or 0.5
    return 3


def settings_of(cls):
    """The settings of a part, each with another value; a digest goes with its folder only."""
    hints = get_type_hints(cls)
    for field in dataclasses.fields(cls):
        value = other(field.name, field.default, hints[field.name])
        more = {"folder": "my-set"} if field.name == "digest" else {}
        yield field.name, {field.name: value, **more}


PLAIN_SETTINGS = [
    pytest.param(part, name, values, id=f"{part}.{name}")
    for part, cls in PLAIN.items()
    for name, values in settings_of(cls)
]


def with_part(part, values):
    return dataclasses.replace(Experiment(), **{part: PLAIN[part](**values)})


@pytest.mark.parametrize(("part", "name", "values"), PLAIN_SETTINGS)
def test_changes_are_what_differs_from_the_defaults(part, name, values):  # noqa: ARG001 - its id
    changed = with_part(part, values)
    assert changed.changes()[part] == values
    assert experiment_of(json.loads(json.dumps(changed.changes()))) == changed


@pytest.mark.parametrize(("part", "name", "values"), PLAIN_SETTINGS)
def test_no_setting_can_change_without_the_key(part, name, values):
    """But the folder of a defense set, whose content is in the key, and what only moves bits."""
    changed = with_part(part, values)
    if part == "compute" and name in ONLY_LAST_BITS:
        assert changed.key() == Experiment().key()
        return
    if name == "folder":
        with pytest.raises(SettingsError, match="has a key once it is `pinned`"):
            changed.key()
        return
    assert changed.key() != Experiment().key()


@pytest.mark.parametrize("scale", ["cpu", "paper"])
@pytest.mark.parametrize("task", TASKS)
def test_changes_and_defaults_are_the_experiment(task, scale):
    configured = configure(task, scale, {})
    assert experiment_of(json.loads(json.dumps(configured.changes()))) == configured
    assert parse_toml(write_toml(configured)) == configured


@pytest.mark.parametrize(
    ("part", "name"), [(part, name) for part, found in PLUGINS.items() for name in found]
)
def test_every_plugin_goes_there_and_back(part, name):
    changed = experiment_of({"attack": {"name": "pgd"}, part: {"name": name}})
    assert changed.name_of(part) == name
    assert parse_toml(write_toml(changed)) == changed
    assert experiment_of(json.loads(json.dumps(changed.changes()))).key() == changed.key()


def test_the_defaults_change_nothing_but_name_their_plugins():
    assert Experiment().changes() == {
        "task": {"name": "digits-edge"},
        "attack": {"name": "none"},
        "schedule": {"name": "never"},
        "defense": {"name": "fedavg"},
    }


@pytest.mark.parametrize("seed", [0, 3])
def test_keys_of_many_seeds_are_the_keys_of_each(seed):
    server = ServerSettings(folder="my-set", digest="0123456789abcdef")
    for plain in (Experiment(), Experiment(server=server), configure("digits-edge", "cpu", {})):
        one = dataclasses.replace(plain, seed=seed)
        expected = [dataclasses.replace(one, seed=number).key() for number in range(4)]
        assert one.seed_keys(4) == expected
        assert len({*expected}) == 4
    with pytest.raises(SettingsError, match="pinned"):
        Experiment(server=ServerSettings(folder="my-set")).seed_keys(1)


def test_keys_know_the_values_and_not_only_the_names():
    assert Experiment(seed=1).key() != Experiment(seed=2).key()
    keys = [configure("digits-edge", "cpu", {"alpha": text}).key() for text in ("0.1", "0.2")]
    assert keys[0] != keys[1]


def test_a_whole_number_is_the_number_that_it_is():
    """A setting that is a float may be given as 1 in Python, and is 1.0 in a file."""
    one, other_one = (FixedFrequency(), attacks.Pgd(radius=1)), attacks.Pgd(radius=2)
    keys = [
        Experiment(attack=attacks.Pgd(radius=value), schedule=one[0]).key() for value in (2, 2.0)
    ]
    assert keys[0] == keys[1]
    assert other_one == attacks.Pgd(radius=2.0)


def test_the_defaults_are_those_that_results_were_stored_with():
    classes = [cls for found in PLUGINS.values() for cls in found.values()] + list(PLAIN.values())
    facts = {
        cls.__name__: {field.name: field.default for field in dataclasses.fields(cls)}
        for cls in classes
        if dataclasses.is_dataclass(cls)
    }
    text = json.dumps(facts, sort_keys=True, default=repr)
    assert hashlib.sha256(text.encode()).hexdigest()[:16] == DEFAULTS_PIN, ADVICE


def test_the_key_of_the_default_run_is_the_one_that_results_were_stored_with():
    assert configure("digits-edge", "cpu", {}).key() == KEY_PIN, (
        "stored results are no longer found: if ENGINE, or the revision of pgd-replacement or "
        "fedavg, was raised on purpose, update this pin"
    )


@pytest.mark.parametrize(
    "name", [field.name for field in dataclasses.fields(ServerSettings) if field.name != "digest"]
)
def test_what_the_server_holds_is_not_in_the_key_of_the_run_without_attack(name):
    values = dict(settings_of(ServerSettings))[name]
    changed = dataclasses.replace(Experiment(), server=ServerSettings(**values))
    assert changed.without_attack() == Experiment().without_attack()


@pytest.mark.parametrize("name", ATTACKS)
def test_the_run_without_attack_is_fedavg_and_nobody_attacks(name):
    changed = configure("digits-edge", "cpu", {"attack": name, "defense": "krum"})
    calm = changed.without_attack()
    assert calm == configure("digits-edge", "cpu", {"attack": "none"})
    assert (calm.attack, calm.name_of("defense"), calm.attacked) == (None, "fedavg", False)


def test_experiments_that_differ_in_the_attack_share_it():
    base = configure("digits-edge", "cpu", {})
    for changes in (
        {"period": "1"},
        {"replacement_radius": "3"},
        {"defense": "krum"},
        {"attack": "pgd"},
        {"server.poison": "3"},
        {"checkpoint_every": "2"},
    ):
        changed = configure("digits-edge", "cpu", changes)
        assert changed.key() != base.key()
        assert changed.without_attack().key() == base.without_attack().key()
    for changes in ({"seed": "1"}, {"rounds": "5"}, {"attack_poison": "50"}, {"alpha": "1"}):
        changed = configure("digits-edge", "cpu", changes)
        assert changed.without_attack().key() != base.without_attack().key()


class NewPgd(attacks.Pgd):
    name: ClassVar[str] = "pgd"
    revision: ClassVar[int] = 9


def test_a_raised_revision_concerns_its_runs_and_no_others(monkeypatch):
    calm, attacked = Experiment(), Experiment(attack=attacks.Pgd(), schedule=FixedFrequency())
    before = [calm.key(), attacked.key()]
    monkeypatch.setattr(attacks.Pgd, "revision", 2)
    assert calm.key() == before[0]
    assert attacked.key() != before[1]
    assert before[1] in attacked.keys()  # noqa: SIM118 - it is no mapping
    monkeypatch.setattr(config, "ENGINE", 2)
    assert calm.key() != before[0]
    assert before[0] in calm.keys()  # noqa: SIM118


def test_who_does_not_attack_has_no_schedule():
    assert Experiment(schedule=FixedFrequency()).name_of("schedule") == "never"


def test_toml_there_and_back(tmp_path):
    changed = configure(
        "digits-edge",
        "cpu",
        {"schedule.last": "7", "marked_class": "3", "defense": "ndc", "defense.norm_bound": "0.5"},
    )
    (tmp_path / "config.toml").write_text(write_toml(changed))
    assert read_toml(tmp_path / "config.toml") == changed


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("rounds = ", "no readable configuration"),
        ("[federatoin]", "there is no part 'federatoin', did you mean 'federation'"),
        ("task = 3", r"\[task\] must be a section, got 3"),
        ("[attack]\nepochs = 3", r"\[attack\] has settings but no name"),
        ("[federation]\nround = 3", "federation has no setting 'round', did you mean 'rounds'"),
        ('[defense]\nname = "krumm"', "no defense is called 'krumm', did you mean 'krum'"),
        ('seed = "x"', "seed must be an integer, got 'x'"),
        ('scale = "huge"', "scale must be cpu or paper, got 'huge'"),
        ("[federation]\nrounds = 0", "federation.rounds must be >= 1, got 0"),
    ],
)
def test_a_file_that_cannot_be_read(tmp_path, text, message):
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(SettingsError, match=message) as caught:
        read_toml(path)
    assert str(path) in str(caught.value)


def test_a_file_that_is_not_there(tmp_path):
    with pytest.raises(SettingsError, match="no readable configuration"):
        read_toml(tmp_path / "none.toml")


def test_every_part_has_a_section():
    assert [line for line in write_toml(Experiment()).splitlines() if line.startswith("[")] == [
        f"[{part}]" for part in ORDER
    ]


def test_registries_are_those_of_the_packages():
    assert config.PLUGINS == {
        "task": tasks.REGISTRY,
        "attack": attacks.REGISTRY,
        "schedule": schedules.REGISTRY,
        "defense": defenses.REGISTRY,
    }
