"""Pools: their sizes, and that nothing is in two of them."""

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.data.pictures import images, photos, rows_of

from datadefense.attacks.poison import edge_case, positive_tweets, southwest
from datadefense.attacks.pools import OverlapError, Pools, PoolSizes, check_disjoint, split_pools
from datadefense.core.content import content_keys, rows_seen_in
from datadefense.core.examples import Examples
from datadefense.core.rng import generator


def test_photos_are_not_torn_apart():
    attack_set = southwest(photos(60, "train"), photos(12, "test"))
    assert set(attack_set.train.labels.tolist()) == {9}
    pools = split_pools(attack_set, PoolSizes(attacker=90, defense=70), generator(0, "pools"))
    photo = {row: index // 4 for index, row in enumerate(rows_of(attack_set.train.inputs))}
    attacker = {photo[row] for row in rows_of(pools.attacker.inputs)}
    defense = {photo[row] for row in rows_of(pools.defense.inputs)}
    assert (len(pools.attacker), len(pools.defense), len(pools.test)) == (90, 70, 48)
    assert not attacker & defense
    assert len(attacker) == 23


def test_a_photo_of_the_training_part_is_dropped_from_the_test():
    train, test = photos(10, "train"), photos(5, "test")
    test[10] = train[33]
    pools = split_pools(southwest(train, test), PoolSizes(8, 8), generator(0, "pools"))
    assert rows_of(pools.test.inputs) == rows_of(torch.cat([test[:8], test[12:]]))


@given(
    st.lists(st.integers(0, 60), min_size=4, max_size=60),
    st.lists(st.integers(0, 90), min_size=2, max_size=30),
    st.integers(0, 5),
)
def test_pools_are_disjoint_or_refused(train, test, seed):
    attack_set = positive_tweets(torch.tensor(train)[:, None], torch.tensor(test)[:, None])
    sizes = PoolSizes(attacker=len(train) // 4, defense=len(train) // 4)
    try:
        pools = split_pools(attack_set, sizes, generator(seed, "pools"))
    except ValueError as error:
        if "must suffice" not in str(error):
            raise
        return
    parts = [set(rows_of(p.inputs)) for p in (pools.attacker, pools.defense, pools.test)]
    assert not parts[0] & parts[1]
    assert not (parts[0] | parts[1]) & parts[2]
    assert len(pools.attacker) == len(pools.defense) == len(train) // 4
    assert rows_of(pools.test.inputs) == [(x,) for x in test if x not in train]
    again = split_pools(attack_set, sizes, generator(seed, "pools"))
    assert rows_of(again.defense.inputs) == rows_of(pools.defense.inputs)


def test_the_authors_overlap_by_name_only():
    train, test = photos(60, "train"), photos(5, "test")
    test[10] = train[33]
    attack_set = southwest(train, test)
    pools = split_pools(attack_set, PoolSizes(100), generator(0, "pools"), overlap="authors")
    assert rows_of(pools.attacker.inputs) == rows_of(pools.defense.inputs)
    assert len(pools.test) == 20
    with pytest.raises(OverlapError, match="100 of 100 defense examples are also attacker"):
        check_disjoint(pools)
    fewer = split_pools(attack_set, PoolSizes(60, 20), generator(0, "pools"), overlap="authors")
    assert rows_of(fewer.attacker.inputs)[:20] == rows_of(fewer.defense.inputs)
    more = split_pools(attack_set, PoolSizes(60, 100), generator(0, "pools"), overlap="authors")
    assert len(more.attacker) == len(more.defense) == 60


def test_overlaps_are_named():
    def part(*values):
        return Examples(torch.tensor(values)[:, None], torch.zeros(len(values)).long())

    check_disjoint(Pools(part(1, 2), part(3), part(4, 5)))
    with pytest.raises(OverlapError, match=r"1 of 2 test .* also attacker .*\(test rows 1\)"):
        check_disjoint(Pools(part(1, 2), part(3), part(4, 2)))
    with pytest.raises(OverlapError, match=r"9 of 9 test .* defense .* rows 0, .*, 7, \.\.\.\)"):
        check_disjoint(Pools(part(1), part(3), part(*[3] * 9)))
    assert rows_seen_in(part(5, 6, 7).inputs, part(7, 5).inputs).tolist() == [0, 2]
    assert len(set(content_keys(torch.zeros(3, 4)))) == 1


def test_a_smaller_test_pool():
    attack_set = positive_tweets(torch.arange(20)[:, None], torch.arange(30, 60)[:, None])
    pools = split_pools(attack_set, PoolSizes(5, 0, 12), generator(0, "pools"))
    assert len(pools.defense) == 0
    assert len(set(rows_of(pools.test.inputs))) == 12


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: split_pools(
                positive_tweets(torch.arange(99)[:, None], -torch.ones(3, 1).long()),
                PoolSizes(60, 100),
                generator(0),
            ),
            r"got 60 \+ 100 of 99 examples in 99 groups",
        ),
        (
            lambda: split_pools(
                positive_tweets(torch.arange(9)[:, None], torch.arange(2)[:, None]),
                PoolSizes(2, 2),
                generator(0),
            ),
            "not in the training part, got 1 > 0",
        ),
        (lambda: PoolSizes(attacker=0), "attacker must be >= 1, got 0"),
        (lambda: PoolSizes(defense=-1), "defense must be >= 0, got -1"),
        (lambda: PoolSizes(test=0), "test must be >= 1, got 0"),
        (
            lambda: split_pools(
                edge_case(images(4, "a"), images(4, "b"), 1), PoolSizes(1, 1), generator(0), "full"
            ),
            "overlap must be one of none, authors, got 'full'",
        ),
    ],
)
def test_bad_input_names_the_inequality(call, message):
    with pytest.raises(ValueError, match=message):
        call()
