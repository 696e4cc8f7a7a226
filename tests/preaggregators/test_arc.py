import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds

from datadefense import Server, create
from datadefense.core.defense import TooFewClientsError
from datadefense.preaggregators import Arc


@given(rounds(min_clients=5), st.integers(0, 2))
def test_it_is_the_slow_one(round, malicious):
    made = Arc(num_malicious=malicious).prepare(None, round, Server())
    wanted = torch.tensor(oracles.arc_rows(round.updates.tolist(), malicious))
    assert torch.allclose(made.round.updates, wanted, atol=1e-5)


def test_the_bound_is_at_most_the_longest_honest_norm():
    for clients in range(3, 40):
        for malicious in range((clients - 1) // 2 + 1):
            lengths = torch.arange(1.0, clients + 1)
            lengths[:malicious] = 1e20
            made = Arc(malicious).prepare(None, as_round(lengths[:, None]), Server())
            assert made.report["norm_bound"] <= clients


def test_without_attackers_nothing_changes():
    round = as_round(torch.tensor([[1.0], [5.0], [9.0]]))
    assert Arc(num_malicious=0).prepare(None, round, Server()).round.updates is round.updates


def test_too_few_clients():
    assert Arc(num_malicious=2).shortage(4) == "arc needs n >= 2f + 1, got n=4, f=2"
    assert Arc(num_malicious=2).shortage(5) is None
    with pytest.raises(TooFewClientsError, match="arc needs n >= 2f"):
        create("arc+fedavg", {"num_malicious": 2}).check_clients(4)
