"""Gaussian noise, fixed or with the honest spread."""

import pytest
import torch
from hypothesis import given
from tests.attacks.situations import context, update_of
from tests.attacks.views import assert_stands_all, normal, view_of
from tests.strategies import matrices

from datadefense.attacks.base import Sees
from datadefense.attacks.gaussian import Gaussian
from datadefense.core.settings import SettingsError


def test_fixed_noise_is_each_attackers_own():
    one, two, again = (
        update_of(Gaussian(deviation=3.0), where=context(attacker=(place, 2)))
        for place in (0, 1, 0)
    )
    assert torch.equal(one, again)
    assert not torch.equal(one, two)
    assert torch.equal(update_of(Gaussian(deviation=6.0)), 2 * update_of(Gaussian(deviation=3.0)))
    assert 2.0 < float(one.std()) < 4.0
    assert Gaussian().agree(view_of(normal(3))) is None
    assert Gaussian().sees() is Sees.NOTHING


@given(matrices(min_clients=2))
def test_honest_noise_has_the_honest_mean_and_deviation(honest):
    own = normal(3, honest.shape[1])
    plot = Gaussian(spread="honest").agree(view_of(honest, own))
    for coordinate, column in enumerate(zip(*honest.tolist(), strict=True)):
        middle = sum(column) / len(column)
        deviation = (sum((x - middle) ** 2 for x in column) / (len(column) - 1)) ** 0.5
        for row in range(3):
            expected = middle + deviation * float(own[row, coordinate])
            assert float(plot.updates[row, coordinate]) == pytest.approx(expected, 1e-4, 1e-4)


def test_noise_of_the_honest_spread_is_drawn_with_a_deviation_of_one():
    assert torch.equal(update_of(Gaussian(spread="honest")), update_of(Gaussian(deviation=1.0)))


def test_it_stands_whatever_the_round_is():
    def own(attackers, rows):
        return normal(attackers, rows.shape[1], dtype=rows.dtype)

    assert_stands_all(Gaussian(spread="honest"), own)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"spread": "wide"}, "spread must be one of fixed, honest"),
        ({"deviation": 0.0}, "deviation must be > 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        Gaussian(**settings)
