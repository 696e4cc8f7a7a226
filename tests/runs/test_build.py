"""What the server holds, and what a run without attack does not depend on."""

from collections import Counter
from functools import cache

import pytest
import torch
from tests.runs.quick import quick
from tests.tasks.fake_images import fake_images

from datadefense.core.settings import SettingsError
from datadefense.data.digits import load_digits_edge
from datadefense.runs.build import assemble, load_data
from datadefense.runs.configure import configure
from datadefense.tasks import digits_edge, images

pytest.importorskip("mlxtend")
pytest.importorskip("sklearn")
SERVERS = {
    "server.poison": 20,
    "server.known_clean": 25,
    "server.clean": 300,
    "wrong_marks_percent": 10,
    "poison_view": "relabelled",
}
"""Settings of the server, with other values than the default ones."""


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
    owned = defense_set_of(**{"server.clean": 30, "server.known_clean": 10, "server.poison": 20})
    assert owned.provenance == ("clean",) * 30 + ("poisoned",) * 20
    data = load_data(quick(**{"server.poison": 20}), None)
    assert same(owned.examples, data.server_clean.take(torch.arange(30)).join(data.server_poison))


def test_the_first_clean_examples_are_known():
    owned = defense_set_of(**{"server.clean": 30, "server.known_clean": 10, "server.poison": 20})
    assert owned.known_clean.tolist() == [True] * 10 + [False] * 40


def test_there_may_be_no_poison():
    owned = defense_set_of(**{"server.clean": 30, "server.known_clean": 30, "server.poison": 0})
    assert owned.provenance == ("clean",) * 30
    assert owned.known_clean.all()


def test_a_larger_set_begins_with_the_smaller_one():
    small, large = (
        defense_set_of(**{"server.clean": n, "server.known_clean": 5}) for n in (10, 400)
    )
    assert same(small.examples.take(torch.arange(10)), large.examples.take(torch.arange(10)))


@pytest.mark.parametrize(("percent", "wrong"), [(0, 0), (5, 1), (20, 4), (100, 20)])
def test_wrong_marks_are_on_poison_instead_of_clean_examples(percent, wrong):
    owned = defense_set_of(
        wrong_marks_percent=percent,
        **{"server.clean": 30, "server.known_clean": 20, "server.poison": 25},
    )
    marked = [
        origin
        for origin, known in zip(owned.provenance, owned.known_clean.tolist(), strict=True)
        if known
    ]
    assert Counter(marked) == Counter(clean=20 - wrong, poisoned=wrong)


def test_all_marks_may_be_on_one_class():
    owned = defense_set_of(marked_class=3, **{"server.known_clean": 25})
    assert owned.examples.labels[owned.known_clean].tolist() == [3] * 25
    assert {
        origin for origin, known in zip(owned.provenance, owned.known_clean, strict=True) if known
    } == {"clean"}
    assert sorted(owned.ids) == sorted(defense_set_of(**{"server.known_clean": 25}).ids)


@pytest.mark.parametrize(
    "changes",
    [{}, {"wrong_marks_percent": 20}, {"marked_class": 3}, {"second_backdoor": "known"}],
    ids=str,
)
def test_the_root_set_is_what_is_known_to_be_clean(changes):
    server = server_of(**changes, **{"server.known_clean": 25})
    owned = server.defense_set
    assert len(server.clean) == 25
    assert same(server.clean, owned.examples.take(owned.known_clean.nonzero().flatten()))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"server.clean": 401}, "server.clean must be <= 400, got 401"),
        (
            {"marked_class": 3, "server.known_clean": 100},
            r"server.known_clean must be <= examples of class 3, got 100 > \d\d$",
        ),
        (
            {"server.poison": 1, "server.known_clean": 20, "wrong_marks_percent": 10},
            "wrong marks must be on poisoned examples: 2 <= 1 of them",
        ),
        (
            {"poison_view": "recoloured"},
            "poison_view must be one of same, relabelled, relabelled-any, triggers with "
            "digits-edge, got 'recoloured'",
        ),
    ],
)
def test_what_the_data_cannot_give(changes, message):
    with pytest.raises(SettingsError, match=message):
        server_of(**changes)


@pytest.fixture(scope="module")
def calm():
    """A federation that nobody attacks."""
    return assemble(quick(attack="none"))[0]


@pytest.mark.parametrize("name", [name for name in SERVERS if name != "poison_view"])
def test_what_the_server_holds_does_not_matter_to_the_others(calm, name):
    changed, _ = assemble(quick(attack="none", **{name: SERVERS[name]}))
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
    changed, _ = assemble(quick(attack="none", **{name: value}))
    assert not (same(changed.train, calm.train) and same(changed.backdoor_test, calm.backdoor_test))


STAND_IN = {"dataset": "mnist", "sevens": "uci", "server.poison": "50"}
CASES = [
    (task, {}, name)
    for task in ("cifar10-trigger", "cifar10-southwest")
    for name in ("server.poison", "server.known_clean", "server.clean", "poison_view")
]


@pytest.mark.parametrize(
    ("task", "plain", "name"),
    [*CASES, ("emnist-ardis", STAND_IN, "server.poison")],
)
def test_the_servers_examples_do_not_change_what_the_others_have(task, plain, name):
    changed = {name: str(SERVERS[name])}
    before, after = (
        load_data(configure(task, "cpu", plain | {"attack": "none"} | more), None)
        for more in ({}, changed)
    )
    for part in ("warm", "clients", "test", "backdoor_test"):
        assert same(getattr(before, part), getattr(after, part)), part
    for one, two in zip(before.module.parameters(), after.module.parameters(), strict=True):
        assert torch.equal(one, two)


def test_more_poison_than_a_task_has_is_refused():
    with pytest.raises(SettingsError, match=r"server.poison must be <= \d+, .*, got 9999"):
        load_data(configure("cifar10-trigger", "cpu", {"server.poison": "9999"}), None)
