"""Settings of DataDefense: the learned form gives the figures of before, each setting counts."""

import json
import math
from dataclasses import fields, replace
from functools import cache
from pathlib import Path

import pytest
import torch
from tests.defenses.datadefense import rounds, sets, toys

from datadefense import Examples, Server
from datadefense.core.defense_set import DefenseSet
from datadefense.core.settings import SettingsError
from datadefense.defenses import DataDefense, DataDefenseLearned, create

BEFORE = json.loads(Path(__file__).with_name("before_settings.json").read_text())
"""Weights, norms of models and theta, from the code in which these settings were constants."""
CLASSES = 10


@pytest.mark.parametrize("kind", rounds.KINDS)
@pytest.mark.parametrize("name", BEFORE)
def test_the_defaults_give_what_the_constants_gave(name, kind):
    expected = BEFORE[name][kind]
    results = rounds.play(create(name), sets.server(), kind, 4)
    for result, weights, size in zip(results, expected["weights"], expected["sizes"], strict=True):
        assert result.weights.tolist() == pytest.approx(weights, abs=1e-5)
        assert float(result.params.double().norm()) == pytest.approx(size, rel=1e-5)
    if expected["theta"]:
        assert results[-1].state.theta.tolist() == pytest.approx(expected["theta"], rel=1e-4)


OTHER = {
    DataDefense: {
        "slack": (0.0, "patient"),
        "known_poison": (1.0, "patient"),
        "moved_far": (0.1, "noise"),
        "low_share": (0.3, "noise"),
        "chance": (0.0, "patient"),
        "num_malicious": (0, "nothing sure"),
        "fewest_known": (1000, "patient"),
        "prior_examples": (10_000, "hard label"),
        "pile_share": (0.3, "two piles"),
        "full_step_share": (1.0, "attacked"),
        "aim": (0.5, "patient"),
        "corrections": (0, "patient"),
        "halvings": (0, "towards"),
        "free_distance_round": (0.5, "noise"),
        "free_distance_least": (0.5, "noise"),
        "free_distance_most": (1.5, "noise"),
        "distance_memory": (1, "noise"),
        "remembered_margins": (0, "shrinks"),
    },
    DataDefenseLearned: {
        "beta": (0.3, "noise"),
        "theta_rate": (0.0, "noise"),
        "psi_steps": (1, "noise"),
        "halt_after": (0, "noise"),
        "worse_on_clean_low": (0.0, "noise"),
        "worse_on_clean_high": (0.5, "noise"),
        "learned_poison_low": (1.0, "noise"),
        "learned_poison_high": (3.0, "noise"),
        "moved_far_low": (0.0, "noise"),
        "moved_far_high": (0.5, "noise"),
        "excuse_clean": (0.0, "noise"),
        "excuse_poison": (0.0, "patient"),
        "most_rise": (0.1, "noise"),
        "loss_floor": (1.0, "noise"),
        "free_distance_round": (0.5, "noise"),
        "free_distance_least": (0.5, "noise"),
        "free_distance_most": (1.5, "noise"),
        "distance_memory": (1, "noise"),
        "first_share": (0.0, "noise"),
        "margin_clip": (1.0, "noise"),
        "lam": (2.0, "noise"),
        "consistency": (0.0, "noise"),
        "psi_rate": (1e-3, "noise"),
        "start_steps": (10, "noise"),
        "start_rate": (1e-4, "noise"),
        "hidden": (16, "noise"),
        "least_marked": (0.5, "auto"),
        "fewest_known": (1000, "auto"),
    },
}
"""Another value of each setting, and where it makes a difference."""


def described(margins, labels, known):
    """A server whose model gives these margins, whatever its parameters."""
    inputs = torch.stack([margins, labels.float()], dim=1)

    def predict(params, inputs):
        logits = torch.zeros(len(inputs), CLASSES)
        raised = inputs[:, :1] + math.log(CLASSES - 1)
        return logits.scatter(1, inputs[:, 1:].long(), raised) + 0 * params[0]

    return Server(predict, None, 0, DefenseSet(Examples(inputs, labels), known, inputs))


def two_piles():
    return described(*sets.drawn_set(0, {3: 100, 7: 40})[:3])


def hard_label():
    """A label that is hard among the known clean examples too."""
    margins, labels, known, _ = sets.drawn_set(0, {}, clean=600, known=200)
    hard = (labels == 4) & (torch.arange(600) % 4 > 0)
    return described(torch.where(hard, margins - 10, margins), labels, known)


def shrinking(defense):
    """A set that loses half of its examples, and gets a new one."""
    owned, params = sets.owned(), toys.released()
    state = defense.init(sets.server(owned), params)
    part = owned.take(torch.arange(60, 120)).add(toys.defense_set(1, 0, 0, seed=9))
    return [defense.aggregate(state, toys.attacked_round(6, 2), sets.server(part))]


@cache
def seen(defense, where):
    """Everything that some rounds give, as values that can be compared."""
    server, kind = sets.server(), where
    if where == "shrinks":
        results = shrinking(defense)
    elif where == "towards":
        round = toys.round_of([sets.towards_poison(toys.released(), 0.3)] * 3)
        hidden = replace(defense, known_poison=0.0, moved_far=0.0, corrections=0)
        results = [hidden.aggregate(hidden.init(server, toys.released()), round, server)]
    else:
        if where == "nothing sure":
            known = torch.ones(120, dtype=torch.bool)
            server, kind = sets.server(replace(sets.owned(), known_clean=known)), "noise"
        elif where in ("two piles", "hard label"):
            server, kind = two_piles() if where == "two piles" else hard_label(), "noise"
        elif where == "auto":
            defense, kind = replace(defense, beta="auto"), "noise"
        results = rounds.play(defense, server, kind, 3)
    last = results[-1].state
    return (
        [result.params.tolist() for result in results],
        [result.evidence["moved_far"].tolist() for result in results],
        [list(result.detector.marked) for result in results],
        last.first_margins,
        last.distances,
        getattr(last, "theta", torch.zeros(0)).tolist(),
        [weight.tolist() for weight in getattr(last, "psi", ())],
    )


@pytest.mark.parametrize(
    ("make", "name"), [(make, name) for make, values in OTHER.items() for name in values]
)
def test_each_setting_makes_a_difference(make, name):
    value, where = OTHER[make][name]
    assert getattr(make(), name) != value
    assert seen(replace(make(), **{name: value}), where) != seen(make(), where)


@pytest.mark.parametrize("make", OTHER)
def test_every_setting_is_tried(make):
    assert set(OTHER[make]) == {field.name for field in fields(make)}


@pytest.mark.parametrize(
    ("make", "values", "message"),
    [
        (DataDefense, {"fewest_known": 0}, "fewest_known must be >= 1, got 0"),
        (DataDefense, {"prior_examples": 0}, "prior_examples must be >= 1, got 0"),
        (DataDefense, {"pile_share": 1.5}, "pile_share must be <= 1, got 1.5"),
        (DataDefense, {"full_step_share": 0}, "full_step_share must be > 0, got 0"),
        (DataDefense, {"aim": 1.5}, "aim must be <= 1, got 1.5"),
        (DataDefense, {"halvings": -1}, "halvings must be >= 0, got -1"),
        (DataDefense, {"corrections": -1}, "corrections must be >= 0, got -1"),
        (DataDefense, {"free_distance_round": -1}, "free_distance_round must be >= 0, got -1"),
        (DataDefense, {"free_distance_most": 1}, "free_distance_most must be >= 1.5, got 1"),
        (DataDefense, {"distance_memory": 0}, "distance_memory must be >= 1, got 0"),
        (DataDefense, {"remembered_margins": -1}, "remembered_margins must be >= 0, got -1"),
        (DataDefenseLearned, {"moved_far_low": -1}, "moved_far_low must be >= 0, got -1"),
        (DataDefenseLearned, {"moved_far_high": 0}, "moved_far_high must be >= 0.1, got 0"),
        (DataDefenseLearned, {"free_distance_most": 1}, "free_distance_most must be >= 1.5"),
        (DataDefenseLearned, {"excuse_clean": -1}, "excuse_clean must be >= 0, got -1"),
        (DataDefenseLearned, {"first_share": 2}, "first_share must be <= 1, got 2"),
        (DataDefenseLearned, {"least_marked": 2}, "least_marked must be <= 1, got 2"),
        (DataDefenseLearned, {"margin_clip": 0}, "margin_clip must be > 0, got 0"),
        (DataDefenseLearned, {"consistency": -1}, "consistency must be >= 0, got -1"),
        (DataDefenseLearned, {"start_steps": -1}, "start_steps must be >= 0, got -1"),
        (DataDefenseLearned, {"hidden": 0}, "hidden must be >= 1, got 0"),
        (DataDefenseLearned, {"distance_memory": 0}, "distance_memory must be >= 1, got 0"),
    ],
)
def test_bad_settings(make, values, message):
    with pytest.raises(SettingsError, match=message):
        make(**values)
