"""Constrain-and-scale: closer to the global model, then scaled so that it replaces it."""

import pytest
import torch
from tests.attacks.situations import OWN, context, update_of

from datadefense.attacks.black_box import BlackBox
from datadefense.attacks.constrain import ConstrainAndScale
from datadefense.core.settings import SettingsError

REPLACEMENT = 400 / 40
"""The examples of the round over the attacker's."""


def test_it_stays_closer():
    plain, close = (
        update_of(BlackBox(**OWN)),
        update_of(ConstrainAndScale(**OWN, alpha=0.2)) / REPLACEMENT,
    )
    assert close.norm() < 0.8 * plain.norm()


def test_without_a_price_on_distance_it_is_plain_training_scaled():
    plain, scaled = update_of(BlackBox(**OWN)), update_of(ConstrainAndScale(**OWN, alpha=1.0))
    assert torch.allclose(scaled, REPLACEMENT * plain, atol=1e-5)


def test_the_factor_is_the_rounds_examples_over_the_attackers():
    few, many = (
        update_of(ConstrainAndScale(**OWN), where=context(num_examples=count))
        for count in (40, 120)
    )
    assert torch.allclose(many, 3 * few)


@pytest.mark.parametrize(
    ("alpha", "message"), [(0.0, "alpha must be > 0, got 0"), (1.5, "alpha must be <= 1, got 1.5")]
)
def test_bad_settings(alpha, message):
    with pytest.raises(SettingsError, match=message):
        ConstrainAndScale(alpha=alpha)
