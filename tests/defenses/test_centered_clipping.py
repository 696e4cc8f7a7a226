import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, matrices, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import CenteredClipping


@given(matrices(), st.sampled_from([None, 0.1, 2.0, 100.0]), st.integers(1, 3))
def test_the_twin_over_rounds(rows, radius, iterations):
    defense = CenteredClipping(radius, iterations)
    played = [rows, rows.roll(1, 1), -rows]
    expected = oracles.centered_clipping([m.tolist() for m in played], radius, iterations)
    state = defense.init(Server(), torch.zeros(rows.shape[1]))
    for matrix, center in zip(played, expected, strict=True):
        round = as_round(matrix)
        result = defense.aggregate(state, round, Server())
        assert update_of(result, round).tolist() == pytest.approx(center, abs=1e-5)
        state = result.state
        assert state.center.tolist() == pytest.approx(center, abs=1e-5)


def test_the_default_clips_and_a_radius_of_100_does_not():
    rows = 0.1 * torch.randn(9, 100, generator=torch.Generator().manual_seed(0))
    rows[8] = 5.0
    round = as_round(rows)
    start = CenteredClipping().init(Server(), round.global_params)
    ours = CenteredClipping().aggregate(start, round, Server())
    wide = CenteredClipping(radius=100.0).aggregate(start, round, Server())
    assert update_of(wide, round).tolist() == pytest.approx(rows.mean(0).tolist(), abs=1e-5)
    assert update_of(ours, round).norm() < 0.6
    assert update_of(wide, round).norm() > 5
    assert str(ours.reasons[8]).startswith("50 away from the last aggregate, pulled as if")


def test_weights_are_those_of_clients_and_the_center_has_the_rest():
    rows = torch.tensor([[1.0, 0.0], [0.0, 1.0], [4.0, 4.0]])
    defense, round = CenteredClipping(1.0, 2), as_round(rows)
    first = defense.aggregate(defense.init(Server(), round.global_params), round, Server())
    second = defense.aggregate(first.state, round, Server())
    for result, before in ((first, torch.zeros(2)), (second, first.state.center)):
        rest = result.state.center - result.weights @ rows
        share = rest.norm() / before.norm() if before.norm() else 0.0
        assert torch.allclose(rest, share * before, atol=1e-6)
        assert 0 <= share < 1


def test_a_majority_at_the_center_holds_it():
    rows = torch.zeros(5, 3)
    rows[4] = 1e30
    round = as_round(rows)
    result = CenteredClipping().aggregate(
        CenteredClipping().init(Server(), round.global_params), round, Server()
    )
    assert torch.equal(result.params, round.global_params)


def test_bad_settings():
    with pytest.raises(SettingsError, match="radius must be > 0, got 0"):
        CenteredClipping(radius=0.0)
    with pytest.raises(SettingsError, match="iterations must be >= 1, got 0"):
        CenteredClipping(iterations=0)
