import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import HDBSCAN
from tests import oracles
from tests.strategies import as_round, rounds, scattered, update_of

from datadefense import Server
from datadefense.core.layout import Layout
from datadefense.core.settings import SettingsError
from datadefense.defenses import Flame
from datadefense.defenses.flame import connected_majority
from datadefense.kernels.directions import cosine_distances, exact_gram


@given(scattered(), st.sampled_from(["models", "updates"]))
def test_the_twin(rows, space):
    round = as_round(rows)
    result = Flame(0.0, space).aggregate(None, round, Server())
    start = round.global_params.tolist() if space == "models" else [0.0] * rows.shape[1]
    places = [[a + b for a, b in zip(start, row, strict=True)] for row in rows.tolist()]
    accepted = oracles.flame_accepted(places)
    assert result.weights.nonzero().flatten().tolist() == accepted
    expected = oracles.flame(rows.tolist(), accepted)
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


@given(scattered(least=2, most=30))
def test_the_majority_is_what_hdbscan_finds(rows):
    distances = cosine_distances(exact_gram(rows))
    found = HDBSCAN(
        min_cluster_size=len(rows) // 2 + 1,
        min_samples=1,
        allow_single_cluster=True,
        metric="precomputed",
        copy=True,
    ).fit_predict(distances.numpy())
    assert connected_majority(distances).members.tolist() == (found == 0).tolist()


@given(rounds())
def test_grids_full_of_ties(round):
    """Ties are connected at once: order has no part, and the majority is one."""
    result = Flame(0.0).aggregate(None, round, Server())
    turned = as_round(round.updates.flip(0), round.num_examples.flip(0).tolist())
    other = Flame(0.0).aggregate(None, turned, Server())
    assert ((result.weights > 0) == (other.weights > 0).flip(0)).all()
    assert result.report["accepted"] > round.num_clients // 2
    assert result.params.isfinite().all()


def test_warm_models_are_told_apart():
    """Their cosines are 1 - 1e-10; in float32 all of them are 1."""
    draw = torch.Generator().manual_seed(0)
    rows = 1e-5 * torch.randn(10, 3000, generator=draw)
    common = 1e-5 * torch.randn(3000, generator=draw)
    rows[:6] = common + 0.1 * rows[:6]
    round = as_round(rows)
    result = Flame().aggregate(None, round, Server())
    assert (result.weights > 0).tolist() == [True] * 6 + [False] * 4
    assert result.report["reach"] < 1e-9
    assert result.evidence["angle"][9] > result.report["reach"] > 0


def test_nobody_counts_with_more_than_the_median_norm_of_all():
    rows = torch.tensor([[1.0, 0.0], [2.0, 0.1], [8.0, 0.3], [0.0, -100.0], [0.0, -90.0]])
    result = Flame(0.0, "updates").aggregate(None, as_round(rows), Server())
    assert result.report["norm_bound"] == pytest.approx(float(rows[2].norm()))
    assert result.weights.tolist() == pytest.approx([1 / 3] * 3 + [0, 0])
    said = [str(reason) for reason in result.reasons if reason is not None]
    assert said[0] == (
        "cosine distance 1 from the nearest of the majority, which 0.000702 connects"
    )


def test_examples_can_weigh():
    rows = torch.tensor([[1.0, 0.0], [1.0, 0.01], [-1.0, 5.0]])
    round = as_round(rows, [1, 3, 50])
    result = Flame(0.0, "updates", "examples").aggregate(None, round, Server())
    assert result.weights.tolist() == pytest.approx([0.25, 0.75, 0.0])


def test_noise_is_of_its_size_and_not_for_statistics():
    rows = 0.01 * torch.randn(5, 20_000, generator=torch.Generator().manual_seed(0))
    layout = Layout.of_state_dict(
        {"weight": torch.zeros(19_000), "bn.running_mean": torch.zeros(1000)}
    )
    round = as_round(rows)
    round = type(round)(1, round.global_params, rows, round.num_examples, round.client_ids, layout)
    plain = Flame(0.0).aggregate(None, round, Server())
    noisy = Flame(0.5).aggregate(None, round, Server())
    noise = noisy.params - plain.params
    assert float(noise[:19_000].std()) == pytest.approx(noisy.report["noise_std"], rel=0.03)
    assert noisy.report["noise_std"] == pytest.approx(0.5 * noisy.report["norm_bound"])
    assert not noise[19_000:].any()


def test_bad_settings():
    with pytest.raises(SettingsError, match="noise_multiplier must be >= 0, got -1"):
        Flame(noise_multiplier=-1.0)
    with pytest.raises(SettingsError, match="space must be one of models, updates"):
        Flame(space="layers")
    with pytest.raises(SettingsError, match="weighting must be one of uniform, examples"):
        Flame(weighting="votes")
