import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import Ndc, NdcAdaptive, WeakDp


@given(rounds(), st.sampled_from([0.1, 1.0, 2.0, 50.0]))
def test_ndc(round, bound):
    result = Ndc(bound).aggregate(None, round, Server())
    rows, counts = round.updates.tolist(), round.num_examples.tolist()
    expected = oracles.ndc(rows, counts, bound)
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)
    for norm, scale, row in zip(
        result.evidence["norm"], result.evidence["scale"], rows, strict=True
    ):
        assert float(norm) == pytest.approx(oracles.norm(row), rel=1e-6)
        assert float(norm * scale) <= bound * (1 + 1e-9)


@given(rounds())
def test_ndc_adaptive(round):
    rows, counts = round.updates.tolist(), round.num_examples.tolist()
    bound = oracles.mean([oracles.norm(row) for row in rows])
    result = NdcAdaptive().aggregate(None, round, Server())
    assert result.report["norm_bound"] == pytest.approx(bound, rel=1e-6)
    expected = oracles.ndc(rows, counts, bound)
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


@pytest.mark.parametrize("size", [1e-30, 1e-3, 1e20, 1e38])
def test_a_clipped_update_has_the_norm_of_the_bound(size):
    row = torch.full((1, 4096), size)
    round = as_round(row)
    update = update_of(Ndc(2.0).aggregate(None, round, Server()), as_round(row))
    assert float(update.norm()) == pytest.approx(min(2.0, size * 64), rel=1e-3, abs=1e-5)


@given(rounds(), st.integers(1, 5))
def test_weak_dp_is_ndc_and_its_noise(round, seed):
    server = Server(seed=seed)
    result = WeakDp(1.0, 0.5).aggregate(None, round, server)
    noise = torch.randn(round.updates.shape[1], generator=server.generator("weak-dp", 1))
    expected = oracles.ndc(round.updates.tolist(), round.num_examples.tolist(), 1.0)
    applied = update_of(result, round) - 0.5 * noise.double()
    assert applied.tolist() == pytest.approx(expected, abs=1e-5)


def test_weak_dp_adds_noise_of_its_size_and_of_its_round():
    rows = torch.randn(5, 20_000, generator=torch.Generator().manual_seed(0)) / 100
    plain = Ndc().aggregate(None, as_round(rows), Server())
    noisy = [
        WeakDp(noise_std=0.01).aggregate(None, as_round(rows, index=index), Server(seed=seed))
        for index, seed in ((1, 0), (1, 0), (2, 0), (1, 1))
    ]
    noise = [result.params - plain.params for result in noisy]
    assert torch.equal(noise[0], noise[1])
    assert not torch.allclose(noise[0], noise[2])
    assert not torch.allclose(noise[0], noise[3])
    for one in noise:
        assert float(one.std()) == pytest.approx(0.01, rel=0.03)
        assert abs(float(one.mean())) < 5e-4


@pytest.mark.parametrize("make", [Ndc, WeakDp])
@pytest.mark.parametrize("bound", [0.0, -1.0, float("inf")])
def test_bad_settings(make, bound):
    with pytest.raises(SettingsError, match="norm_bound must be"):
        make(norm_bound=bound)
    with pytest.raises(SettingsError, match="noise_std must be >= 0, got -1"):
        WeakDp(noise_std=-1.0)
