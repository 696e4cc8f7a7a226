import pytest
import torch
from hypothesis import given
from tests import oracles
from tests.strategies import as_round, rounds, update_of

from datadefense import Server
from datadefense.defenses import FedAvg


@given(rounds())
def test_fedavg_is_the_mean_by_examples(round):
    result = FedAvg().aggregate(None, round, Server())
    expected = oracles.mean_of(round.updates.tolist(), round.num_examples.tolist())
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


def test_fedavg_by_hand():
    round = as_round([[1.0, 0.0], [0.0, 4.0]], counts=[3, 1])
    result = FedAvg().aggregate(None, round, Server())
    assert result.weights.tolist() == [0.75, 0.25]
    assert torch.equal(result.params, round.global_params + torch.tensor([0.75, 1.0]))
