"""Shards against slow twins: who is allotted what, and who gives to whom."""

import heapq
import math
import time

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datadefense.core.rng import generator
from datadefense.data.partition import (
    _allot,
    _from_the_largest,
    _log_gamma_draws,
    by_user,
    dirichlet,
    iid,
)


def assert_partition(shards, num_examples):
    assert sorted(index for shard in shards for index in shard.tolist()) == list(
        range(num_examples)
    )
    assert all(shard.tolist() == sorted(shard.tolist()) for shard in shards)
    assert all(shard.dtype == torch.int64 for shard in shards)


def same(left, right):
    return all(a.equal(b) for a, b in zip(left, right, strict=True))


@given(st.integers(1, 200), st.data())
def test_iid_deals_evenly(num_examples, data):
    num_clients = data.draw(st.integers(1, num_examples))
    shards = iid(num_examples, num_clients, generator(0, "iid"))
    assert_partition(shards, num_examples)
    sizes = [len(shard) for shard in shards]
    assert len(sizes) == num_clients
    assert max(sizes) - min(sizes) <= 1
    assert same(shards, iid(num_examples, num_clients, generator(0, "iid")))


@given(
    st.lists(st.integers(0, 12), min_size=1, max_size=150),
    st.integers(1, 20),
    st.sampled_from([1e-320, 1e-4, 0.05, 0.5, 3.0, 1e6]),
    st.data(),
)
def test_dirichlet_is_a_partition_with_enough_for_each(classes, num_clients, alpha, data):
    labels = torch.tensor(classes)
    least = data.draw(st.integers(0, len(classes) // num_clients))
    shards = dirichlet(labels, num_clients, alpha, generator(1, "dirichlet"), least)
    assert len(shards) == num_clients
    assert_partition(shards, len(labels))
    assert min(len(shard) for shard in shards) >= least
    again = dirichlet(labels, num_clients, alpha, generator(1, "dirichlet"), least)
    assert same(shards, again)


def test_another_seed_deals_otherwise():
    labels = torch.arange(500) % 5
    first, second = (dirichlet(labels, 8, 0.5, generator(seed, "d")) for seed in (0, 1))
    assert not torch.cat(first).equal(torch.cat(second))


def slow_allot(size, log_shares, is_open):
    peak = max(value for value, free in zip(log_shares, is_open, strict=True) if free)
    shares = [
        math.exp(value - peak) if free else 0.0
        for value, free in zip(log_shares, is_open, strict=True)
    ]
    total, running, bounds = sum(shares), 0.0, [0]
    for share in shares:
        running += share / total
        bounds.append(running * size)
    return bounds


@given(st.integers(0, 500), st.lists(st.tuples(st.floats(-9, 9), st.booleans()), min_size=1))
def test_a_class_is_allotted_by_its_shares(size, clients):
    log_shares = [share for share, _ in clients]
    is_open = [free for _, free in clients]
    is_open[len(clients) // 2] = True
    counts = _allot(size, torch.tensor(log_shares).double(), torch.tensor(is_open)).tolist()
    assert sum(counts) == size
    assert all(count == 0 for count, free in zip(counts, is_open, strict=True) if not free)
    assert min(counts) >= 0
    bounds = slow_allot(size, torch.tensor(log_shares).double().tolist(), is_open)
    total = 0
    for count, bound in zip(counts, bounds[1:], strict=True):
        total += count
        assert abs(total - bound) < 1 + 1e-6


def slow_gifts(held, count):
    heap = [(-size, client) for client, size in enumerate(held)]
    heapq.heapify(heap)
    gifts = [0] * len(held)
    for _ in range(count):
        size, client = heap[0]
        gifts[client] += 1
        heapq.heapreplace(heap, (size + 1, client))
    return gifts


@given(st.lists(st.integers(0, 30), min_size=1, max_size=12), st.data())
def test_one_by_one_from_the_richest(held, data):
    count = data.draw(st.integers(0, sum(held)))
    assert _from_the_largest(torch.tensor(held), count).tolist() == slow_gifts(held, count)


def test_only_the_rich_give_and_only_the_poor_take():
    labels = torch.arange(2000) % 10
    raw, filled = (dirichlet(labels, 40, 0.1, generator(3, "fill"), least) for least in (0, 20))
    sizes = [len(shard) for shard in raw]
    missing = sum(max(0, 20 - size) for size in sizes)
    assert missing > 0
    expected = [
        max(size, 20) - gift for size, gift in zip(sizes, slow_gifts(sizes, missing), strict=True)
    ]
    assert [len(shard) for shard in filled] == expected
    for before, after in zip(raw, filled, strict=True):
        rich, poor = set(before.tolist()), set(after.tolist())
        assert rich <= poor if len(before) < 20 else poor <= rich


def test_a_client_that_has_its_share_gets_no_more():
    """N / K = 50: at most one class can carry a client beyond it."""
    labels = torch.arange(1000) // 100
    for shard in dirichlet(labels, 20, 0.5, generator(0, "balance"), 0):
        counts = labels[shard].bincount(minlength=10).tolist()
        held = 0
        for count in counts:
            assert count == 0 or held < 50
            held += count


def test_the_shares_are_dirichlet():
    """Mean 1 / K and variance (1/K)(1 - 1/K) / (K alpha + 1), as Dirichlet(alpha) has them."""
    for alpha in (0.05, 0.5, 2.0):
        shares = _log_gamma_draws(40_000, 5, alpha, generator(0, "shares")).softmax(dim=1)
        variance = 0.2 * 0.8 / (5 * alpha + 1)
        assert shares.mean(0).tolist() == pytest.approx([0.2] * 5, abs=0.01)
        assert shares.var(0).tolist() == pytest.approx([variance] * 5, rel=0.05)


def test_a_small_alpha_means_few_classes():
    labels = torch.arange(20_000) % 10

    def classes_a_client(alpha):
        shards = dirichlet(labels, 100, alpha, generator(0, "skew"))
        return sum(len(labels[shard].unique()) for shard in shards) / len(shards)

    assert classes_a_client(0.05) < 3.5 < classes_a_client(0.5) < 8.5 < classes_a_client(100.0)


@pytest.mark.parametrize(("examples", "alpha"), [(60_000, 0.05), (60_000, 0.5), (240_000, 0.5)])
def test_it_ends_soon_with_3383_clients(examples, alpha):
    labels = torch.arange(examples) % 10
    started = time.perf_counter()
    shards = dirichlet(labels, 3383, alpha, generator(0, "many"), min_examples=10)
    assert time.perf_counter() - started < 5
    assert min(len(shard) for shard in shards) >= 10
    assert torch.cat(shards).sort().values.equal(torch.arange(examples))


@given(st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=40), st.data())
def test_users_stay_whole(users, data):
    alone = by_user(users, generator(0, "users"))
    assert_partition(alone, len(users))
    assert [{users[i] for i in shard} for shard in alone] == [{u} for u in dict.fromkeys(users)]
    num_clients = data.draw(st.integers(1, len(set(users))))
    shared = by_user(users, generator(0, "users"), num_clients)
    assert_partition(shared, len(users))
    held = [{users[i] for i in shard} for shard in shared]
    assert sum(len(names) for names in held) == len(set(users))
    assert max(map(len, held)) - min(map(len, held)) <= 1


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda g: iid(3, 0, g), "num_clients must be >= 1, got 0"),
        (lambda g: iid(3, 4, g), "num_clients <= examples, got num_clients=4, 3 examples"),
        (lambda g: dirichlet(torch.zeros(9).long(), 0, 0.5, g), "num_clients must be >= 1, got 0"),
        (lambda g: dirichlet(torch.zeros(9).long(), 3, 0.0, g), "alpha must be > 0, got 0"),
        (lambda g: dirichlet(torch.zeros(9).long(), 3, -1.0, g), "alpha must be > 0, got -1"),
        (lambda g: dirichlet(torch.zeros(9).long(), 3, math.nan, g), "alpha must be a finite"),
        (lambda g: dirichlet(torch.zeros(9).long(), 3, 1, g, -1), "min_examples must be >= 0"),
        (lambda g: dirichlet(torch.zeros(9).long(), 3, 1, g, 4), r"3 \* 4 = 12 > 9"),
        (lambda g: by_user(["a", "b"], g, 0), "num_clients must be >= 1, got 0"),
        (lambda g: by_user(["a", "b"], g, 3), "num_clients <= users, got num_clients=3, 2 users"),
        (lambda g: by_user([], g), "by_user needs >= 1 example, got 0"),
    ],
)
def test_bad_input_names_the_inequality(call, message):
    with pytest.raises(ValueError, match=message):
        call(generator(0, "bad"))
