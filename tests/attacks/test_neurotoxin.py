"""Neurotoxin: the coordinates that moved most stay where they are."""

import pytest
import torch
from tests.attacks.situations import FEDERATION, OWN, context, update_of

from datadefense.attacks.black_box import BlackBox
from datadefense.attacks.neurotoxin import Neurotoxin
from datadefense.core.settings import SettingsError


def test_the_busy_coordinates_are_left_alone():
    moved = torch.randn(len(FEDERATION.start), generator=torch.Generator().manual_seed(0))
    where = context(previous=FEDERATION.start - moved)
    update = update_of(Neurotoxin(**OWN, top_fraction=0.3), where=where)
    count = int(0.3 * len(moved))
    order = moved.abs().argsort(descending=True)
    assert (update[order[:count]] == 0).all()
    assert (update[order[count:]] != 0).float().mean() > 0.5


def test_in_the_first_round_it_is_plain_poisoned_training():
    first = update_of(Neurotoxin(**OWN, top_fraction=0.3), where=context(previous=None))
    assert torch.equal(first, update_of(BlackBox(**OWN)))


@pytest.mark.parametrize(
    ("fraction", "message"),
    [(0.0, "top_fraction must be > 0, got 0"), (1.0, "top_fraction must be < 1, got 1")],
)
def test_bad_settings(fraction, message):
    with pytest.raises(SettingsError, match=message):
        Neurotoxin(top_fraction=fraction)
