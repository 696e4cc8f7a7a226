import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.strategies import matrices

from datadefense.defenses.bulyan import mean_around_median
from datadefense.kernels import networks


def apply(network, values):
    values = list(values)
    for comparator in network:
        pair = values[comparator.low], values[comparator.high]
        values[comparator.low] = min(pair) if comparator.needs_min else None
        values[comparator.high] = max(pair) if comparator.needs_max else None
    return values


@pytest.mark.parametrize("size", range(1, 13))
def test_networks_sort_every_pattern(size):
    """The 0-1 principle: what sorts every row of zeros and ones sorts everything."""
    network = networks.sorting_network(size)
    for bits in itertools.product((0, 1), repeat=size):
        assert apply(network, bits) == sorted(bits)


@pytest.mark.parametrize("size", range(1, 11))
def test_selections_select_every_pattern(size):
    for trim in range((size + 1) // 2):
        network = networks.selection_network(size, trim, size - trim)
        for bits in itertools.product((0, 1), repeat=size):
            kept = apply(network, bits)[trim : size - trim]
            assert sorted(kept) == sorted(bits)[trim : size - trim]


@pytest.mark.parametrize("size", [30, 64, 99, 100])
def test_large_networks(size):
    rows = torch.randn(size, 4000, generator=torch.Generator().manual_seed(size))
    ordered = rows.double().sort(dim=0).values
    for trim in (0, 1, size // 5, (size - 1) // 2):
        expected = ordered[trim : size - trim].mean(0)
        assert torch.allclose(networks.trimmed_mean(rows, trim).double(), expected, atol=1e-6)
    assert np.allclose(networks.median(rows).numpy(), np.median(rows.numpy(), axis=0), atol=1e-7)


def test_selecting_costs_less_than_sorting():
    whole = 2 * len(networks.sorting_network(100))
    median = networks.selection_network(100, 49, 51)
    assert sum(c.needs_min + c.needs_max for c in median) < 0.8 * whole


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_do_not_matter(threads):
    rows = torch.randn(9, 100_001, generator=torch.Generator().manual_seed(0))
    rules = [
        networks.median,
        lambda u: networks.trimmed_mean(u, 2),
        lambda u: mean_around_median(u, list(range(9)), 5),
    ]
    alone = [rule(rows) for rule in rules]
    torch.set_num_threads(threads)
    try:
        for rule, expected in zip(rules, alone, strict=True):
            assert torch.equal(rule(rows), expected)
    finally:
        torch.set_num_threads(1)


@pytest.mark.slow
@given(matrices(max_clients=9), st.integers(1, 3))
def test_chunks_do_not_matter(updates, width):
    wide = updates.repeat(1, 7)
    before = networks.COLUMNS
    whole = networks.median(wide)
    try:
        networks.COLUMNS = width
        assert torch.equal(networks.median(wide), whole)
    finally:
        networks.COLUMNS = before


def test_more_columns_than_a_chunk_and_an_odd_rest():
    rows = torch.randn(7, 2 * networks.COLUMNS + 5)
    assert torch.equal(networks.median(rows), rows.median(0).values)


def test_the_ends_of_the_float_range_do_not_overflow():
    top = torch.finfo(torch.float32).max
    rows = torch.tensor([[top, -top]]).repeat(8, 1)
    assert torch.allclose(networks.median(rows), rows[0])
    assert torch.allclose(networks.trimmed_mean(rows * 0.99, 0), rows[0] * 0.99)


@pytest.mark.parametrize("trim", [-1, 2, 5])
def test_nothing_left(trim):
    with pytest.raises(ValueError, match=f"needs 0 <= 2 \\* trim < n, got n=4, trim={trim}"):
        networks.trimmed_mean(torch.zeros(4, 3), trim)
