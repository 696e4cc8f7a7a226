"""Inversion: finds a patch that is there, with costs and scores as by hand."""

import math
import statistics

import pytest
import torch
from tests.defense_sets.suggestions.toy_models import SIDE, TARGET, corner_models, images

from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.defense_sets.suggestions.inversion import (
    MANY,
    OUTLIER,
    Patch,
    Search,
    invert,
    outliers,
    suspicious,
    turning_cost,
)

QUICK = Search(steps=150, batch_size=16)


def found(target=TARGET, seed=0):
    return invert(images(), target, corner_models(), generator(seed, "patch"), QUICK)


def patch(target, size, turned=1.0, trusted=0.0):
    mask = torch.zeros(SIDE, SIDE)
    mask.view(-1)[:size] = 1
    return Patch(target, mask, torch.full((1, SIDE, SIDE), 200.0), turned, trusted)


def test_the_corner_is_found():
    one = found()
    assert one.turned >= 0.9
    assert one.turned_trusted == 0
    assert one.size < 30
    assert float(one.mask[:3, :3].sum()) > 0.5 * one.size
    assert float(one.mask[:3, :3].mean()) > 5 * float(one.mask[3:, 3:].mean())
    covered = one.mask[:3, :3] > 0.5
    assert float(one.pattern[0, :3, :3][covered].mean()) > 200


def test_a_class_without_a_backdoor_has_no_patch():
    assert found(target=1).turned == 0


def test_same_draw_same_patch():
    one, two, other = found(), found(), found(seed=1)
    assert torch.equal(one.mask, two.mask)
    assert torch.equal(one.pattern, two.pattern)
    assert not torch.equal(one.mask, other.mask)


def test_the_size_costs():
    """With a weight that only falls the first patch that works stays; with more, it shrinks."""
    draw, models = generator(0, "patch"), corner_models()
    light = invert(
        images(), TARGET, models, draw, Search(steps=150, first_weight=1e-9, factor=1.0001)
    )
    assert light.turned >= 0.9
    assert light.size > 1.5 * found().size


@pytest.mark.parametrize("seed", range(5))
def test_the_cost_by_hand(seed):
    draw = generator(seed, "logits")
    suspect, trusted = (torch.randn(6, 4, generator=draw) for _ in range(2))
    total = 0.0
    for one, two in zip(suspect.tolist(), trusted.tolist(), strict=True):
        f = math.exp(one[1]) / sum(map(math.exp, one))
        g = math.exp(two[1]) / sum(map(math.exp, two))
        total += -math.log(f) - math.log(1 - g)
    assert float(turning_cost(suspect, trusted, 1)) == pytest.approx(total / 6, rel=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_outliers_by_hand(seed):
    sizes = (100 * torch.rand(9, generator=generator(seed, "sizes"))).tolist()
    middle = statistics.median(sizes)
    spread = 1.4826 * statistics.median(abs(one - middle) for one in sizes)
    expected = [(middle - one) / spread for one in sizes]
    assert outliers(sizes) == pytest.approx(expected)


def test_sizes_that_are_alike_have_no_outlier():
    assert outliers([3.0, 3.0, 3.0]) == [0.0] * 3
    assert outliers([3.0]) == [0.0]


def test_an_outlier_or_else_the_smallest():
    others = [patch(target, 60 + 3 * target) for target in range(5)]
    assert [one.target for one in suspicious([*others, patch(5, 4)])] == [5]
    assert [one.target for one in suspicious(others)] == [0]
    idle = patch(5, 4, turned=MANY - 0.01)
    assert [one.target for one in suspicious([*others, idle])] == [0]
    both = patch(5, 4, trusted=MANY)
    assert [one.target for one in suspicious([*others, both])] == [0]
    two = suspicious([*others, patch(5, 4), patch(6, 5)])
    assert [one.target for one in two] == [5, 6]
    assert outliers([60, 63, 66, 69, 72, 4])[5] > OUTLIER


def test_no_patch_that_works():
    with pytest.raises(SettingsError, match="no class has one, the best turns 30%"):
        suspicious([patch(0, 9, turned=0.3), patch(1, 8, turned=0.1)])


def test_a_stamp_pixel_by_pixel():
    draw = generator(0, "stamp")
    mask, pattern = torch.rand(5, 4, generator=draw), 255 * torch.rand(3, 5, 4, generator=draw)
    given = torch.randint(256, (2, 3, 5, 4), generator=draw, dtype=torch.uint8)
    made = Patch(0, mask, pattern, 0, 0).stamp(given)
    for place in [(n, c, row, col) for n in (0, 1) for c in range(3) for row in range(5)
                  for col in range(4)]:  # fmt: skip
        m, p = float(mask[place[2:]]), float(pattern[place[1:]])
        assert abs(int(made[place]) - ((1 - m) * int(given[place]) + m * p)) <= 0.501
    assert Patch(0, mask, pattern, 0, 0).size == pytest.approx(sum(mask.flatten().tolist()))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (images()[:0], "inversion needs images of other classes than 2, got none"),
        (torch.zeros(3, 30, dtype=torch.int32), "inversion needs images, uint8"),
    ],
)
def test_what_cannot_be_inverted(given, message):
    with pytest.raises(SettingsError, match=message):
        invert(given, TARGET, corner_models(), generator(0, "patch"), QUICK)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"steps": 0}, "steps must be >= 1, got 0"),
        ({"wanted": 0}, "wanted must be > 0, got 0"),
        ({"factor": 1}, "factor must be > 1, got 1"),
    ],
)
def test_a_search_that_cannot_be(change, message):
    with pytest.raises(SettingsError, match=message):
        Search(**change)
