"""Inner product manipulation: the mean, turned round."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.views import assert_stands_all, guessing_view, normal, view_of
from tests.strategies import matrices

from datadefense.attacks.ipm import Ipm
from datadefense.attacks.untargeted import LEVELS
from datadefense.core.settings import SettingsError


@given(matrices(), st.sampled_from([0.1, 1.0, 100.0]), st.integers(1, 3))
def test_all_send_the_mean_turned_round(honest, epsilon, attackers):
    plot = Ipm(epsilon=epsilon).agree(view_of(honest, attackers=attackers))
    columns = zip(*honest.tolist(), strict=True)
    expected = [-epsilon * sum(column) / len(honest) for column in columns]
    assert len(plot.updates) == attackers
    for row in plot.updates.tolist():
        assert row == pytest.approx(expected, rel=1e-5, abs=1e-5)


def test_an_average_goes_backwards_from_the_stated_epsilon_on():
    honest = normal(8) + 0.1
    middle = honest.mean(0)
    for epsilon, ahead in ((3.9, True), (4.1, False)):
        sent = Ipm(epsilon=epsilon).agree(view_of(honest)).updates
        average = torch.cat([honest, sent]).mean(0)
        assert (float(average @ middle) > 0) == ahead


def test_without_knowledge_own_trainings_stand_for_the_honest():
    rows = normal(6)
    seen, guessed = Ipm().agree(view_of(rows)), Ipm(knowledge="nothing").agree(guessing_view(rows))
    assert torch.equal(seen.updates, guessed.updates)


@pytest.mark.parametrize("knowledge", LEVELS)
def test_it_stands_whatever_the_round_is(knowledge):
    assert_stands_all(Ipm(knowledge=knowledge))
    assert_stands_all(Ipm(knowledge=knowledge, epsilon=1e30))


def test_bad_settings():
    with pytest.raises(SettingsError, match="epsilon must be > 0, got 0"):
        Ipm(epsilon=0.0)
