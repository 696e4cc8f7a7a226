import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, scattered, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import AlignIns, TooFewClientsError
from datadefense.defenses.alignins import cosines_with, median_z_scores, principal_sign_shares


@given(scattered(least=3), st.sampled_from([0.3, 0.5, 1.0]), st.sampled_from([0.7, 1.0, 1.8]))
def test_the_twin(rows, fraction, limit):
    counts = [1 + 3 * j for j in range(len(rows))]
    round = as_round(rows, counts)
    result = AlignIns(limit, limit, fraction).aggregate(None, round, Server())
    model = round.global_params.tolist()
    directions, signs = oracles.alignins_measures(rows.tolist(), model, fraction)
    assert result.evidence["direction"].tolist() == pytest.approx(directions, abs=1e-7)
    assert result.evidence["principal_signs"].tolist() == pytest.approx(signs)
    borders = [*oracles.median_z(directions), *oracles.median_z(signs)]
    if any(abs(z - limit) < 1e-6 for z in borders):
        return
    expected = oracles.alignins(rows.tolist(), counts, model, fraction, limit)
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


def test_who_points_another_way_is_out_and_hears_why():
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(400, generator=draw) + 0.5 * torch.randn(12, 400, generator=draw)
    rows[7] *= -1
    round = as_round(rows)
    result = AlignIns().aggregate(None, round, Server())
    assert result.weights[7] == 0
    assert result.evidence["off_signs"][7] > 2
    assert "deviations off the median, must be < 1" in str(result.reasons[7])
    kept = (result.weights > 0).sum()
    assert 3 <= kept <= 11
    assert result.report["kept"] == kept


def test_nobody_kept_is_no_step():
    rows = torch.tensor([[1.0, 0.9], [-1.0, 1.0], [1.0, -1.0], [-1.0, -0.9]])
    round = as_round(rows)
    result = AlignIns(1e-6, 1e-6).aggregate(None, round, Server())
    assert torch.equal(result.params, round.global_params)
    assert result.report["kept"] == 0


def test_no_spread_is_no_outlier():
    assert median_z_scores(torch.full((5,), 0.3, dtype=torch.float64)).tolist() == [0.0] * 5
    rows = torch.zeros(4, 3)
    assert cosines_with(rows, torch.ones(3)).tolist() == [0.0] * 4
    assert principal_sign_shares(rows, 0.3).tolist() == [1.0] * 4


def test_too_few_clients():
    with pytest.raises(TooFewClientsError, match="alignins needs n >= 3, got n=2"):
        AlignIns().check_clients(2)
    result = AlignIns().aggregate(None, as_round(torch.ones(2, 2)), Server())
    assert result.report["fallback"] == "alignins needs n >= 3, got n=2: kept the model"


def test_bad_settings():
    for name, value in (("direction_limit", 0.0), ("sign_limit", -1.0), ("top_fraction", 1.1)):
        with pytest.raises(SettingsError, match=f"{name} must be"):
            AlignIns(**{name: value})
