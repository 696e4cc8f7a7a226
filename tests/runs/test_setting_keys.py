"""Keys of settings: where they belong, and what is said where they do not."""

import pytest

from datadefense.core.settings import SettingsError, setting_names
from datadefense.runs.config import ORDER, PLAIN, PLUGINS
from datadefense.runs.setting_keys import OTHER_WORDS, WITHOUT_PART, place

CHOSEN = {
    "task": "digits-edge",
    "attack": "pgd",
    "schedule": "fixed-frequency",
    "defense": "fedavg",
}
CLASSES = {**PLAIN, **{part: PLUGINS[part].find(name) for part, name in CHOSEN.items()}}
NAMES = {part: setting_names(cls) for part, cls in CLASSES.items()}


@pytest.mark.parametrize(
    ("key", "found"),
    [
        ("rounds", ("federation", "rounds")),
        ("federation.rounds", ("federation", "rounds")),
        ("radius", ("attack", "radius")),
        ("attack_clean", ("task", "attack_clean")),
        ("warm.seed", ("warm", "seed")),
        ("schedule.last", ("schedule", "last")),
    ],
)
def test_a_key_names_a_setting_of_a_part(key, found):
    assert place(key, NAMES, CHOSEN) == found


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("epochs", "'epochs' is a setting of several parts: say warm.epochs or federation.epochs"),
        ("attack.epocs", "attack pgd has no setting 'epocs', did you mean 'epochs'?"),
        ("attack.z", "attack pgd has no setting 'z'; those that have it: lie"),
        ("z", "attack pgd has no setting 'z'; those that have it: lie"),
        ("server.poisson", "server has no setting 'poisson', did you mean 'poison'?"),
        ("warm_epochs", "there is no setting 'warm_epochs', did you mean 'warm.epochs'?"),
        ("epocs", "did you mean 'warm.epochs' or 'federation.epochs' or 'attack.epochs'?"),
        ("server_clean", "did you mean 'server.known_clean'?"),
        ("scale", "there is no setting 'scale': say --scale"),
        ("model", "'model': the task has its model"),
        ("defnse", "did you mean 'defense'?"),
        ("zzz", "there is no setting 'zzz'; see: datadefense list settings"),
        ("zzz.epochs", "there is no setting 'zzz.epochs', did you mean 'warm.epochs' or"),
    ],
)
def test_a_key_that_names_none(key, message):
    with pytest.raises(SettingsError) as caught:
        place(key, NAMES, CHOSEN)
    assert message in str(caught.value)


COMPOSED = {"defense": "nnm+multi-krum+server-momentum"}
OF_PARTS = [
    *("nnm.num_malicious", "multi-krum.num_malicious", "multi-krum.weighting"),
    *("server-momentum.momentum", "server-momentum.step_size", "my.module:Own.bound"),
]
PIPELINE = {"federation": ["rounds", "momentum"], "defense": OF_PARTS}


@pytest.mark.parametrize(
    ("key", "name"),
    [
        ("weighting", "multi-krum.weighting"),
        ("defense.weighting", "multi-krum.weighting"),
        ("multi-krum.weighting", "multi-krum.weighting"),
        ("defense.nnm.num_malicious", "nnm.num_malicious"),
        ("bound", "my.module:Own.bound"),
        ("my.module:Own.bound", "my.module:Own.bound"),
        ("defense.momentum", "server-momentum.momentum"),
    ],
)
def test_a_key_names_a_setting_of_a_composed_defense_in_full(key, name):
    assert place(key, PIPELINE, COMPOSED) == ("defense", name)


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ("num_malicious", "num_malicious: which? nnm.num_malicious or multi-krum.num_malicious"),
        (
            "defense.num_malicious",
            "num_malicious: which? nnm.num_malicious or multi-krum.num_malicious",
        ),
        (
            "momentum",
            "'momentum' is a setting of several parts: say federation.momentum or "
            "defense.server-momentum.momentum",
        ),
    ],
)
def test_a_key_that_may_name_several_settings_of_a_composed_defense(key, message):
    with pytest.raises(SettingsError) as caught:
        place(key, PIPELINE, COMPOSED)
    assert str(caught.value) == message


def test_nobody_attacks():
    calm = {part: known for part, known in NAMES.items() if part not in ("attack", "schedule")}
    for key in ("attack.epochs", "schedule.period", "period"):
        with pytest.raises(SettingsError, match=f"^{key} does not apply: nobody attacks$"):
            place(key, calm, {**CHOSEN, "attack": "none"})


def test_other_words_are_of_settings_that_there_are():
    every = {
        f"{part}.{name}"
        for part in ORDER
        for cls in ([PLAIN[part]] if part in PLAIN else PLUGINS[part].ours.values())
        for name in getattr(cls, "__dataclass_fields__", ())
    }
    assert set(OTHER_WORDS.values()) <= every | {*WITHOUT_PART, "task"}
