import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, scattered, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import Caf, TooFewClientsError
from datadefense.defenses.caf import calmest_weights, main_direction
from datadefense.kernels.distances import squared_distances


@given(scattered(least=2), st.data())
def test_the_direction(rows, data):
    weights = torch.tensor(
        data.draw(st.lists(st.integers(1, 9), min_size=len(rows), max_size=len(rows)))
    ).double()
    weights /= weights.sum()
    found = main_direction(squared_distances(rows), weights)
    centred = rows.double() - weights @ rows.double()
    values, vectors = torch.linalg.eigh(centred.T @ (weights[:, None] * centred))
    assert found.variance == pytest.approx(float(values[-1]), rel=1e-5)
    if values[-2] < 0.99 * values[-1]:
        projections = (centred @ vectors[:, -1]).square()
        assert found.projections.tolist() == pytest.approx(projections.tolist(), rel=1e-3, abs=1e-4)


@given(st.integers(0, 2**31), st.integers(3, 9), st.data())
def test_the_twin(seed, clients, data):
    f = data.draw(st.integers(0, (clients - 1) // 2))
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randn(clients, 4, generator=draw) * torch.tensor([8.0, 2.0, 0.5, 0.1])
    round = as_round(rows)
    result = Caf(f).aggregate(None, round, Server())
    expected = oracles.caf(rows.tolist(), f)
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=2e-3)


def test_attackers_of_unlike_sizes_lose_their_weight_one_by_one():
    rows = torch.randn(11, 200, generator=torch.Generator().manual_seed(0))
    rows[0], rows[1], rows[2] = 1e30, -1e12, 1e3
    result = Caf(3).aggregate(None, as_round(rows), Server())
    assert result.weights[:3].tolist() == [0, 0, 0]
    assert result.weights.sum() == pytest.approx(1)
    assert str(result.reasons[0]) == "the filter left it 0 of a weight, of 1"


def test_distances_beyond_the_range_of_doubles_do_not_raise():
    rows = torch.randn(5, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    rows[1] = 1e300
    result = Caf().aggregate(None, as_round(rows), Server())
    assert result.weights[1] == 0
    assert result.params.isfinite().all()


def test_without_attackers_it_is_the_mean():
    rows = torch.randn(5, 20, generator=torch.Generator().manual_seed(0))
    assert calmest_weights(squared_distances(rows), 0).tolist() == [0.2] * 5
    assert calmest_weights(torch.zeros(4, 4, dtype=torch.float64), 1).tolist() == [0.25] * 4


def test_too_few_clients():
    with pytest.raises(TooFewClientsError, match=r"caf needs n >= 2f \+ 1, got n=4, f=2"):
        Caf(2).check_clients(4)
    result = Caf(2).aggregate(None, as_round(torch.ones(4, 2)), Server())
    assert result.report["fallback"].endswith("kept the model")


def test_bad_settings():
    with pytest.raises(SettingsError, match="num_malicious must be >= 0, got -1"):
        Caf(-1)
