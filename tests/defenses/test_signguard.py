import warnings

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from sklearn.cluster import MeanShift, estimate_bandwidth
from tests import oracles
from tests.strategies import as_round, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import SignGuard, TooFewClientsError
from datadefense.defenses.mean_shift import estimated_radius, largest_cluster
from datadefense.defenses.signguard import relative_norms, sign_shares


@st.composite
def clouds(draw):
    """Points around one to three places, without ties."""
    generator = np.random.default_rng(draw(st.integers(0, 2**31)))
    places = generator.random((draw(st.integers(1, 3)), 3))
    points = places[generator.integers(len(places), size=draw(st.integers(4, 20)))]
    return points + 0.05 * generator.standard_normal(points.shape)


@given(clouds())
def test_mean_shift_is_that_of_scikit_learn(points):
    radius = estimated_radius(points, 0.5)
    assert radius == pytest.approx(estimate_bandwidth(points, quantile=0.5))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # one point a bin: the points are the seeds
        shift = MeanShift(bandwidth=radius, bin_seeding=True, cluster_all=False)
        labels = shift.fit_predict(points)
    sizes = np.bincount(labels[labels >= 0])
    if (sizes == sizes.max()).sum() > 1:
        return
    assert largest_cluster(points, radius).tolist() == (labels == sizes.argmax()).tolist()


def test_points_that_are_all_the_same_are_one_cluster():
    points = np.full((5, 3), 0.1)
    assert largest_cluster(points, estimated_radius(points, 0.5)).all()


@given(st.integers(0, 2**31), st.integers(4, 12))
def test_the_twin(seed, clients):
    """Whoever the clusters mark: tests of norms, clipping and mean as in the formula."""
    draw = torch.Generator().manual_seed(seed)
    rows = torch.randn(clients, 40, generator=draw) + 0.3
    rows *= torch.logspace(-1.5, 1.5, clients)[torch.randperm(clients, generator=draw)][:, None]
    round = as_round(rows)
    result = SignGuard(block_fraction=1.0).aggregate(None, round, Server())
    shares = [
        [sum(x > 0 for x in row) / 40, sum(x == 0 for x in row) / 40, sum(x < 0 for x in row) / 40]
        for row in rows.tolist()
    ]
    assert sign_shares(rows).tolist() == shares
    tops = [max(column) for column in oracles.columns(shares)]
    features = np.array(
        [[x / t if t else 0.0 for x, t in zip(r, tops, strict=True)] for r in shares]
    )
    usual = largest_cluster(features, estimated_radius(features, 0.5))
    lengths = [oracles.norm(row) for row in rows.tolist()]
    bound = oracles.median(lengths)
    kept = [j for j in range(clients) if usual[j] and 0.1 < lengths[j] / bound < 3]
    expected = [0.0] * 40
    if kept:
        expected = oracles.mean_of([oracles.clipped(rows[j].tolist(), bound) for j in kept])
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-4)
    assert ("fallback" in result.report) == (not kept)


def test_turned_signs_and_odd_norms_are_out_and_hear_why():
    draw = torch.Generator().manual_seed(0)
    rows = torch.randn(12, 2000, generator=draw) + 0.7
    rows[3] *= -1
    rows[5] *= 10
    rows[8] *= 0.01
    result = SignGuard().aggregate(None, as_round(rows), Server())
    assert result.weights[[3, 5, 8]].tolist() == [0, 0, 0]
    assert (result.weights > 0).sum() >= 6
    assert "of its values are positive, in the largest cluster about 0.7" in str(result.reasons[3])
    assert str(result.reasons[5]).endswith("times the median, must be below 3")
    assert str(result.reasons[8]).endswith("times the median, must be above 0.1")


def test_the_block_is_drawn_anew_in_each_round():
    rows = torch.randn(6, 1000, generator=torch.Generator().manual_seed(0))
    seen = [
        SignGuard().aggregate(None, as_round(rows, index=index), Server()).evidence["positive"]
        for index in (1, 1, 2)
    ]
    assert torch.equal(seen[0], seen[1])
    assert not torch.equal(seen[0], seen[2])


def test_a_median_of_zero():
    found = relative_norms(torch.tensor([0.0, 0.0, 0.0, 5.0], dtype=torch.float64))
    assert found[:3].tolist() == [1.0] * 3
    assert found[3] == pytest.approx(1e30)
    rows = torch.zeros(5, 4)
    rows[0] = 1
    round = as_round(rows)
    result = SignGuard().aggregate(None, round, Server())
    assert torch.equal(result.params, round.global_params)


def test_too_few_clients():
    with pytest.raises(TooFewClientsError, match="signguard needs n >= 4, got n=3"):
        SignGuard().check_clients(3)
    three = as_round(torch.tensor([[1.0], [2.0], [9.0]]))
    result = SignGuard().aggregate(None, three, Server())
    assert result.report["fallback"].endswith("took the median of each coordinate")
    assert update_of(result, three).tolist() == [2.0]


def test_bad_settings():
    for name, value in (("norm_low", 1.0), ("norm_high", 1.0), ("block_fraction", 0.0)):
        with pytest.raises(SettingsError, match=f"{name} must be"):
            SignGuard(**{name: value})
