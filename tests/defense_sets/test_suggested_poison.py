"""A server without poison: its candidates are clean, its own, and nobody else notices."""

from dataclasses import replace

import pytest
import torch
from tests.data.folders import TWEETS, write_tweets
from tests.tasks.fake_images import use_fake_images
from tests.tasks.test_sentiment_yl import SMALL

from datadefense.core.content import content_keys
from datadefense.core.settings import SettingsError
from datadefense.defense_sets.suggested_poison import SUGGESTED, spare_examples
from datadefense.runs.build import load_data
from datadefense.runs.configure import configure


def dealt(task, view, folder=None, **changes):
    given = {key: str(value) for key, value in changes.items()}
    return load_data(configure(task, "cpu", {"poison_view": view, **given}), folder)


def keys(*parts):
    return {key for part in parts for key in content_keys(part)}


def foreign(data):
    """All inputs that no candidate may be made of."""
    attacker_data = data.attacker
    parts = [
        data.test,
        data.backdoor_test,
        attacker_data.clean,
        attacker_data.poison,
        data.server_clean,
    ]
    plain = [] if data.originals is None else [data.originals]
    return keys(*(part.inputs for part in parts), *plain)


def true_labels(data, inputs):
    """What the warm start calls each of the inputs; all of them must be there."""
    known = dict(zip(content_keys(data.warm.inputs), data.warm.labels.tolist(), strict=True))
    return [known[key] for key in content_keys(inputs)]


@pytest.fixture
def no_data(monkeypatch):
    use_fake_images(monkeypatch)


@pytest.mark.parametrize("seed", [0, 1])
def test_digits_that_are_called_one(seed):
    one, two = (dealt("digits-edge", view, seed=seed) for view in ("relabelled", "relabelled-any"))
    for data in (one, two):
        assert len(data.server_poison) == 56, "as many as there would be strange sevens"
        assert set(data.server_poison.labels.tolist()) == {1}
        assert not keys(data.server_poison.inputs) & foreign(data)
    assert set(true_labels(one, one.server_poison.inputs)) == {7}
    others = set(true_labels(two, two.server_poison.inputs))
    assert len(others) > 5
    assert 1 not in others


@pytest.mark.parametrize("view", SUGGESTED)
def test_nobody_else_notices(view):
    one, two = (dealt("digits-edge", which) for which in ("same", view))
    for part in ("warm", "clients", "server_clean", "test", "backdoor_test"):
        assert torch.equal(getattr(one, part).inputs, getattr(two, part).inputs), part
        assert torch.equal(getattr(one, part).labels, getattr(two, part).labels), part
    assert torch.equal(one.attacker.poison.inputs, two.attacker.poison.inputs)
    assert torch.equal(one.attacker.clean.inputs, two.attacker.clean.inputs)
    again = dealt("digits-edge", view)
    assert torch.equal(again.server_poison.inputs, two.server_poison.inputs)
    assert not keys(one.server_poison.inputs) & keys(two.server_poison.inputs)


def test_triggers_are_on_digits_too():
    data = dealt("digits-edge", "triggers")
    assert len(data.server_poison) == 56
    assert data.server_poison.inputs.dtype == data.test.inputs.dtype
    again = data.as_stored(data.server_poison.inputs)
    known = keys(data.as_stored(data.warm.inputs))
    assert len(set(content_keys(again)) - known) > 50, "hardly any is as it was"


@pytest.mark.parametrize(
    ("task", "more", "sources", "target"),
    [
        ("cifar10-label-flip", {}, {1}, 2),
        ("cifar10-trigger", {}, {1}, 2),
        ("cifar10-southwest", {}, {0}, 9),
        ("emnist-ardis", {"dataset": "mnist", "sevens": "uci", "server.poison": 50}, {7}, 1),
    ],
)
@pytest.mark.usefixtures("no_data")
def test_images_say_what_they_are_turned_into(task, more, sources, target):
    plain = dealt(task, "same", **more)
    assert (set(plain.aim.sources), plain.aim.target) == (sources, target)
    if task == "emnist-ardis":
        with pytest.raises(
            SettingsError, match="<= 0, the clean examples of class 7 that are not 1, got 50"
        ):
            dealt(task, "relabelled", **more)
        return
    data = dealt(task, "relabelled", **more)
    assert len(data.server_poison) == len(plain.server_poison)
    assert set(data.server_poison.labels.tolist()) == {target}
    assert set(true_labels(data, data.server_poison.inputs)) == sources
    assert not keys(data.server_poison.inputs) & foreign(data)


@pytest.mark.usefixtures("no_data")
def test_what_the_attacker_stamped_is_not_the_servers():
    """The cars under the attacker's patches, and under its quarters, are known and left out."""
    data = dealt("cifar10-trigger", "same")
    attacker_data = data.attacker
    assert len(data.originals) == 2 * len(attacker_data.poison)
    for stamped, car in zip(attacker_data.poison.inputs, data.originals, strict=False):
        assert 0 < int((stamped != car).any(0).sum()) <= 64
    for part in attacker_data.parts:
        for stamped, car in zip(
            part.inputs, data.originals[len(attacker_data.poison) :], strict=True
        ):
            assert 0 < int((stamped != car).any(0).sum()) <= 16
    spare = spare_examples(data, 0)
    assert not keys(spare.inputs) & keys(data.originals)
    assert keys(spare.inputs) & keys(data.server_poison.inputs) == set()
    unaware = spare_examples(replace(data, originals=None), 0)
    assert keys(unaware.inputs) & keys(data.originals)


def test_tweets_that_are_called_negative(tmp_path):
    write_tweets(tmp_path, 1600, 1500)
    lines = "".join(f'"{4 * (i % 2)}","1","d","q","u","own{i} own{i + 1}"\n' for i in range(20))
    (tmp_path / "sentiment140" / TWEETS["test"]).write_text(lines)
    small = SMALL | {"vocabulary": "5000", "poison_view": "relabelled"}
    data = load_data(configure("sentiment-yl", "cpu", small), tmp_path)
    assert len(data.server_poison) == 5
    assert set(data.server_poison.labels.tolist()) == {0}
    assert set(true_labels(data, data.server_poison.inputs)) == {1}
    with pytest.raises(SettingsError, match="triggers needs images"):
        load_data(configure("sentiment-yl", "cpu", small | {"poison_view": "triggers"}), tmp_path)


def test_no_poison_is_no_candidate():
    assert len(dealt("digits-edge", "relabelled", **{"server.poison": 0}).server_poison) == 0
