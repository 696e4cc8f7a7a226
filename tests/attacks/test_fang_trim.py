"""Fang's attack on trimmed mean: coordinate by coordinate, slowly."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.situations import context, update_of
from tests.attacks.views import assert_stands_all, guessing_view, normal, view_of
from tests.strategies import matrices

from datadefense.attacks.fang_trim import FangTrim
from datadefense.attacks.untargeted import LEVELS
from datadefense.core.settings import SettingsError
from datadefense.defenses.coordinatewise import TrimmedMean

DRAWS = [0.0, 0.25, 0.75]


def slow(column, draw, factor):
    """What one attacker sends in one coordinate."""
    total = sum(column)
    if total == 0:
        return 0.0
    if total > 0:
        near = min(column)
        far = near / factor if near > 0 else near * factor
        assert far <= near
    else:
        near = max(column)
        far = near * factor if near > 0 else near / factor
        assert far >= near
    return near + draw * (far - near)


def slow_guess(column, many):
    count = len(column)
    middle = sum(column) / count
    deviation = (sum((x - middle) ** 2 for x in column) / (count - 1)) ** 0.5
    sign = (middle > 0) - (middle < 0)
    return middle - many * deviation * sign


def draws_for(dim):
    return torch.tensor(DRAWS)[:, None].expand(-1, dim)


@given(matrices(max_clients=7), st.sampled_from([1.0, 1.5, 2.0]))
def test_it_is_just_beyond_the_honest_range(honest, factor):
    plot = FangTrim(factor=factor).agree(view_of(honest, draws_for(honest.shape[1])))
    columns = list(zip(*honest.tolist(), strict=True))
    for draw, row in zip(DRAWS, plot.updates.tolist(), strict=True):
        assert row == pytest.approx([slow(column, draw, factor) for column in columns], abs=1e-5)


@given(matrices(min_clients=2, max_clients=7))
def test_without_knowledge_it_is_some_deviations_off(stand_ins):
    attack = FangTrim(knowledge="nothing", low=3.0, high=4.0)
    plot = attack.agree(guessing_view(stand_ins, draws_for(stand_ins.shape[1])))
    columns = list(zip(*stand_ins.tolist(), strict=True))
    for draw, row in zip(DRAWS, plot.updates.tolist(), strict=True):
        expected = [slow_guess(column, 3 + draw) for column in columns]
        assert row == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_trimmed_mean_moves_the_other_way_more_than_by_absence():
    """Where honest clients differ, f attackers move every coordinate against the honest mean."""
    honest = normal(8) + 0.2
    view = view_of(honest, torch.rand(2, 600))
    plot = FangTrim().agree(view)
    updates = torch.cat([honest, plot.updates])
    rule = TrimmedMean(num_malicious=2)
    moved = rule.combine(view_of(updates[:-2], updates[-2:]).round).update
    against = (honest.mean(0) - moved) * honest.mean(0).sign()
    assert bool((against > -1e-6).all())


def test_each_attacker_draws_for_itself():
    one, two, again = (
        update_of(FangTrim(), where=context(attacker=(place, 2))) for place in (0, 1, 0)
    )
    assert not torch.equal(one, two)
    assert torch.equal(one, again)
    assert 0 <= float(one.min()) < 0.2
    assert 0.8 < float(one.max()) < 1


@pytest.mark.parametrize("knowledge", LEVELS)
def test_it_stands_whatever_the_round_is(knowledge):
    def own(attackers, rows):
        return torch.rand(attackers, rows.shape[1]).to(rows.dtype)

    assert_stands_all(FangTrim(knowledge=knowledge), own)
    assert_stands_all(FangTrim(knowledge=knowledge))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"factor": 0.5}, "factor must be >= 1"),
        ({"low": -1.0}, "low must be >= 0"),
        ({"low": 5.0}, "low must be <= high, got 5 > 4"),
        ({"knowledge": "all"}, "knowledge must be one of"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        FangTrim(**settings)
