import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, matrices, scattered, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import MultiMetrics
from datadefense.defenses.multi_metrics import whitened_scores
from datadefense.kernels.directions import absolute_distances


@given(scattered(least=6), st.sampled_from(["models", "updates"]), st.sampled_from([0.3, 0.5]))
def test_the_twin(rows, space, keep):
    counts = [1 + 3 * j for j in range(len(rows))]
    round = as_round(rows, counts)
    start = round.global_params.tolist() if space == "models" else [0.0] * rows.shape[1]
    places = [[a + b for a, b in zip(start, row, strict=True)] for row in rows.tolist()]
    table = torch.tensor(oracles.multi_metrics_table(places), dtype=torch.float64)
    assume(torch.linalg.cond((table / table.std(0)).T.cov()) < 1e5)
    result = MultiMetrics(keep, space).aggregate(None, round, Server())
    scores = oracles.multi_metrics_scores(places)
    # The twin's columns have deviation 1 of the population, which no score depends on.
    assert result.evidence["score"].tolist() == pytest.approx(scores, rel=1e-3)
    order = sorted(range(len(rows)), key=lambda j: scores[j])
    count = int(keep * len(rows) + 1e-9)
    assume(scores[order[count]] - scores[order[count - 1]] > 1e-3)
    chosen = order[:count]
    expected = oracles.mean_of([rows[j].tolist() for j in chosen], [counts[j] for j in chosen])
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


@given(matrices())
def test_l1_distances(rows):
    expected = [
        [sum(abs(x - y) for x, y in zip(a, b, strict=True)) for b in rows.tolist()]
        for a in rows.tolist()
    ]
    assert absolute_distances(rows).tolist() == expected


def test_columns_that_say_nothing_or_the_same_are_no_trouble():
    table = torch.tensor([[1.0, 2.0, 5.0], [2.0, 4.0, 5.0], [4.0, 8.0, 5.0]], dtype=torch.float64)
    alone = whitened_scores(table[:, :1])
    assert whitened_scores(table).tolist() == pytest.approx(alone.tolist())
    assert whitened_scores(1e-30 * table).tolist() == pytest.approx(alone.tolist())
    assert whitened_scores(torch.ones(3, 3, dtype=torch.float64)).tolist() == [0.0] * 3
    assert whitened_scores(torch.ones(1, 3, dtype=torch.float64)).tolist() == [0.0]


@pytest.mark.parametrize("clients", [1, 2])
def test_one_or_two_are_kept(clients):
    rows = torch.randn(clients, 30, generator=torch.Generator().manual_seed(0))
    result = MultiMetrics().aggregate(None, as_round(rows), Server())
    assert result.report["kept"] == clients


def test_a_far_client_is_out_and_hears_why():
    rows = 0.1 * torch.randn(10, 300, generator=torch.Generator().manual_seed(0))
    rows[4] += 1
    result = MultiMetrics().aggregate(None, as_round(rows), Server())
    assert result.weights[4] == 0
    assert (result.weights > 0).sum() == 3
    assert str(result.reasons[4]).startswith("score of its distances")


def test_bad_settings():
    with pytest.raises(SettingsError, match="keep must be > 0, got 0"):
        MultiMetrics(keep=0.0)
    with pytest.raises(SettingsError, match="space must be one of models, updates"):
        MultiMetrics(space="layers")
