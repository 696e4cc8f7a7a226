import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from datadefense.core.rng import generator
from datadefense.defenses.datadefense.poison_share import estimate_poison_share


def mixture(seed, share, examples, clean, gap):
    """Margins of clean examples around 4, of poisoned ones around 4 - gap; the share is of all."""
    draw = generator(seed, "mixture")
    poisoned = torch.arange(examples) >= examples - round(share * examples)
    margins = 4 + 2 * torch.randn(examples, generator=draw) - gap * poisoned
    return margins, torch.arange(examples) < clean


@given(
    st.lists(st.integers(-20, 20), min_size=5, max_size=12),
    st.lists(st.integers(-20, 20), min_size=5, max_size=12),
)
def test_against_the_bounds_at_every_threshold(clean, unknown):
    margins = torch.tensor([*clean, *unknown], dtype=torch.float64)
    known = torch.arange(len(margins)) < len(clean)
    found = estimate_poison_share(margins, known, 5)
    share, error = oracles.poison_share(margins.tolist(), known.tolist())
    assert found.share == pytest.approx(share, abs=1e-6)
    if share > 0:
        assert found.error == pytest.approx(error, abs=1e-6)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.2, 0.5])
@pytest.mark.parametrize(("examples", "clean"), [(100, 20), (500, 50)])
def test_known_mixtures(share, examples, clean):
    for seed in range(20):
        found = estimate_poison_share(*mixture(seed, share, examples, clean, gap=10), 5)
        assert found.share <= share + 3 * found.error + 0.02
        assert found.share >= share - 4 * found.error - 0.02
        assert found.share <= 1 - clean / examples


@pytest.mark.parametrize("share", [0.2, 0.5])
def test_more_examples_make_it_more_certain(share):
    few, many = (
        estimate_poison_share(*mixture(0, share, size, size // 5, gap=10), 5) for size in (50, 2000)
    )
    assert many.error < few.error / 3
    assert many.share == pytest.approx(share, abs=0.05)


def test_without_poison_it_is_about_zero():
    found = [estimate_poison_share(*mixture(seed, 0, 200, 40, gap=0), 5) for seed in range(40)]
    assert sum(estimate.share for estimate in found) / len(found) < 0.05
    assert max(estimate.share - 3 * estimate.error for estimate in found) <= 0


def test_poison_that_looks_clean_is_not_invented():
    found = estimate_poison_share(*mixture(0, 0.3, 500, 100, gap=0), 5)
    assert found.share < 0.1


def test_poison_that_is_surer_than_clean_examples_is_not_seen():
    found = estimate_poison_share(*mixture(0, 0.3, 500, 100, gap=-50), 5)
    assert found.share == pytest.approx(0, abs=0.05)


def test_all_unknown_examples_are_surer_than_the_clean_ones():
    margins = torch.cat([torch.zeros(10), torch.ones(10)])
    found = estimate_poison_share(margins, torch.arange(20) < 10, 5)
    assert found.share == 0


@pytest.mark.parametrize(("clean", "unknown"), [(0, 50), (4, 50), (50, 4), (50, 0), (2, 2)])
def test_too_few_to_say(clean, unknown):
    margins = torch.linspace(-3, 3, clean + unknown)
    assert estimate_poison_share(margins, torch.arange(clean + unknown) < clean, 5) is None


def test_how_few_is_a_choice():
    margins = torch.linspace(-3, 3, 20)
    assert estimate_poison_share(margins, torch.arange(20) < 4, 4) is not None
    assert estimate_poison_share(margins, torch.arange(20) < 6, 7) is None


@pytest.mark.parametrize("value", [-1e6, 0.0, 1e6])
def test_margins_that_are_all_the_same(value):
    found = estimate_poison_share(torch.full((30,), value), torch.arange(30) < 10, 5)
    assert found.share == 0
