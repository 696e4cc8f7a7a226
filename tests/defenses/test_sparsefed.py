import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, matrices

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import SparseFed


@given(st.data(), st.sampled_from([0.0, 0.5]), st.sampled_from([0.2, 0.5, 1.0]))
def test_three_rounds(data, momentum, fraction):
    first = data.draw(matrices(min_dim=2))
    updates = [first] + [
        data.draw(matrices(len(first), len(first), first.shape[1], first.shape[1]))
        for _ in range(2)
    ]
    defense = SparseFed(norm_bound=4.0, top_fraction=fraction, momentum=momentum)
    count = max(1, int(fraction * first.shape[1] + 0.5))
    params = torch.zeros(first.shape[1])
    state = defense.init(Server(), params)
    total = params.double()
    for matrix in updates:
        result = defense.aggregate(state, as_round(matrix), Server())
        total += result.params.double() - as_round(matrix).global_params.double()
        state = result.state
        assert result.report["coordinates"] == count
    wanted, velocity, error = oracles.sparsefed(
        [matrix.tolist() for matrix in updates], 4.0, momentum, count
    )
    if _clear(updates, momentum, count):
        assert total.tolist() == pytest.approx(wanted, abs=1e-4)
        assert state.momentum.tolist() == pytest.approx(velocity, abs=1e-4)
        assert state.error.tolist() == pytest.approx(error, abs=1e-4)
    applied_or_kept = total + state.error.double()
    assert (
        applied_or_kept.tolist()
        == pytest.approx([w + e for w, e in zip(wanted, error, strict=True)], abs=1e-4)
        or momentum > 0
    )


def _clear(updates, momentum, count):
    """Whether no choice of the top hangs on rounding: check with numbers a little apart."""
    plain = oracles.sparsefed([m.tolist() for m in updates], 4.0, momentum, count)[0]
    bent = oracles.sparsefed(
        [(m.double() * (1 + 1e-6 * torch.arange(1, m.shape[1] + 1))).tolist() for m in updates],
        4.0,
        momentum,
        count,
    )[0]
    return plain == pytest.approx(bent, abs=1e-3)


def test_by_hand():
    defense = SparseFed(norm_bound=100.0, top_fraction=0.5, momentum=0.5)
    rows = torch.tensor([[4.0, 1.0, -3.0, 2.0]])
    one = defense.aggregate(defense.init(Server(), torch.zeros(4)), as_round(rows), Server())
    applied = one.params - as_round(rows).global_params
    assert torch.allclose(applied, torch.tensor([4.0, 0.0, -3.0, 0.0]), atol=1e-6)
    assert one.state.error.tolist() == [0, 1, 0, 2]
    assert one.state.momentum.tolist() == [0, 1, 0, 2]
    two = defense.aggregate(one.state, as_round(torch.zeros(1, 4)), Server())
    assert two.state.error.tolist() == [0, 0, 0, 0]
    applied = two.params - as_round(rows).global_params
    assert torch.allclose(applied, torch.tensor([0.0, 1.5, 0.0, 3.0]), atol=1e-6)


@pytest.mark.parametrize("fraction", [0.0, 1.5, -0.1])
def test_bad_settings(fraction):
    with pytest.raises(SettingsError, match="top_fraction must be"):
        SparseFed(top_fraction=fraction)
    with pytest.raises(SettingsError, match="momentum must be < 1, got 1"):
        SparseFed(momentum=1.0)
