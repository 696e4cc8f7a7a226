import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, matrices, rounds, update_of

from datadefense import Server
from datadefense.defenses import Bulyan, TooFewClientsError
from datadefense.defenses.bulyan import mean_around_median, select_by_krum
from datadefense.kernels.distances import squared_distances


@given(rounds(min_clients=3, max_clients=16), st.data())
def test_bulyan(round, data):
    f = data.draw(st.integers(0, (round.num_clients - 3) // 4))
    rows = round.updates.tolist()
    result = Bulyan(f).aggregate(None, round, Server())
    chosen = oracles.bulyan_chosen(rows, f)
    assert result.evidence["chosen"].nonzero().flatten().tolist() == sorted(chosen)
    assert update_of(result, round).tolist() == pytest.approx(oracles.bulyan(rows, f), abs=1e-5)


@given(matrices(min_clients=1, max_clients=14), st.data())
def test_mean_around_median(updates, data):
    count = data.draw(st.integers(1, len(updates)).filter(lambda k: (len(updates) - k) % 2 == 0))
    clients = data.draw(st.permutations(range(len(updates))))
    expected = [
        oracles.mean(oracles.nearest_to_median(column, count))
        for column in oracles.columns(updates.tolist())
    ]
    actual = mean_around_median(updates, clients, count)
    assert actual.tolist() == pytest.approx(expected, abs=1e-5)


def test_order_matters_only_through_ties():
    """f = 3 leaves two neighbours to the last choice, so nothing ties and nothing changes."""
    rows = torch.randn(15, 40, generator=torch.Generator().manual_seed(1))
    order = torch.randperm(15, generator=torch.Generator().manual_seed(2))
    plain = Bulyan(3).aggregate(None, as_round(rows), Server())
    permuted = Bulyan(3).aggregate(None, as_round(rows[order]), Server())
    assert torch.allclose(plain.params, permuted.params, atol=1e-6)
    assert torch.equal(permuted.evidence["chosen"], plain.evidence["chosen"][order])


def test_select_by_krum_with_one_left():
    distances = squared_distances(torch.tensor([[0.0], [1.0], [3.0]]))
    assert select_by_krum(distances, 3, 0) == oracles.bulyan_chosen([[0.0], [1.0], [3.0]], 0)


def test_too_few_clients():
    with pytest.raises(TooFewClientsError) as caught:
        Bulyan().check_clients(6)
    assert str(caught.value) == "bulyan needs n >= 4f + 3, got n=6, f=1"
    round = as_round(torch.tensor([[0.0], [1.0], [2.0], [3.0], [4.0], [90.0]]))
    result = Bulyan().aggregate(None, round, Server())
    assert "took the median of each coordinate" in result.report["fallback"]
    assert update_of(result, round).tolist() == [2.5]
