"""Inputs on which two models disagree: ranked as by hand."""

import math

import pytest
import torch

from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.defense_sets.suggestions.disagreement import disagreement


def models(seed, count=40, classes=5):
    draw = generator(seed, "logits")
    return [3 * torch.randn(count, classes, generator=draw) for _ in range(2)]


def probabilities(row):
    top = max(row)
    odds = [math.exp(one - top) for one in row]
    return [one / sum(odds) for one in odds]


def by_hand(earlier, later, count, sources=range(5), targets=range(5)):
    found = []
    for row, (one, two) in enumerate(zip(earlier.tolist(), later.tolist(), strict=True)):
        was, now = one.index(max(one)), two.index(max(two))
        if was != now and was in sources and now in targets:
            rise = math.log(probabilities(two)[now]) - math.log(probabilities(one)[now])
            found.append((-rise, row, was, now))
    return sorted(found)[:count]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [1, 7, 1000])
def test_as_by_hand(seed, count):
    earlier, later = models(seed)
    made = disagreement(torch.arange(40), earlier, later, count)
    expected = by_hand(earlier, later, count)
    assert made.examples.inputs.tolist() == [row for _, row, _, _ in expected]
    assert made.examples.labels.tolist() == [now for _, _, _, now in expected]
    assert made.origins == tuple(
        f"{was} turned {now}, log-probability up {-fall:.1f}" for fall, _, was, now in expected
    )


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize(("sources", "targets"), [((1,), None), (None, (0, 2)), ((3, 1), (2,))])
def test_only_some_turns(seed, sources, targets):
    earlier, later = models(seed, 200)
    made = disagreement(torch.arange(200), earlier, later, 8, sources=sources, targets=targets)
    expected = by_hand(earlier, later, 8, sources or range(5), targets or range(5))
    assert made.examples.inputs.tolist() == [row for _, row, _, _ in expected]
    with pytest.raises(SettingsError, match="agree on all .* or on those that are wanted"):
        disagreement(torch.arange(200), earlier, later, 8, sources=(1,), targets=(1,))


def test_a_sure_turn_comes_before_wavering():
    """The first input is given up hesitantly, the second is turned: both drop by as much."""
    earlier = torch.tensor([[9.0, 0.0, 0.0], [9.0, 0.0, 0.0]])
    later = torch.tensor([[-9.0, 0.1, 0.0], [0.0, 9.0, 0.0]])
    made = disagreement(torch.arange(2), earlier, later, 2)
    assert made.examples.inputs.tolist() == [1, 0]


def test_equal_ones_come_in_their_order():
    earlier, later = torch.tensor([[1.0, 0.0]] * 6), torch.tensor([[0.0, 1.0]] * 6)
    assert disagreement(torch.arange(6), earlier, later, 4).examples.inputs.tolist() == [0, 1, 2, 3]


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda one, two: (one, one), "the models agree on all of the 40 inputs"),
        (lambda one, two: (one[:3], two[:3]), "one row of logits an input: 40 inputs, earlier"),
        (lambda one, two: (one, two[:, :2]), r"later \[40, 2\]"),
        (lambda one, two: (one * math.inf, two), "the earlier model's logits must be finite"),
        (lambda one, two: (one, two * math.nan), "the later model's logits must be finite"),
    ],
)
def test_what_cannot_be_compared(change, message):
    with pytest.raises(SettingsError, match=message):
        disagreement(torch.arange(40), *change(*models(0)), 5)


def test_none_is_too_few():
    with pytest.raises(SettingsError, match="candidates must be >= 1, got 0"):
        disagreement(torch.arange(40), *models(0), 0)
