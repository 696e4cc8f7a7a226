"""Malicious clients of the federation: drawn once, and they attack whenever they are there."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from datadefense.core.settings import SettingsError
from datadefense.schedules import FixedPool, participants


def test_the_pool_is_drawn_once_and_attacks_when_it_is_there():
    schedule = FixedPool(share=0.1)
    pool = schedule.malicious(1, 200, seed=3)
    assert len(pool) == 20
    seen = set()
    for index in range(1, 200):
        assert schedule.malicious(index, 200, seed=3) == pool
        for person in participants(schedule, index, 200, 10, seed=3):
            assert person.is_malicious == (person.client_id in pool)
            seen |= {person.client_id} if person.is_malicious else set()
    assert seen == pool
    assert pool != schedule.malicious(1, 200, seed=4)


@given(st.floats(0, 1, exclude_min=True), st.integers(1, 300), st.integers(0, 3))
def test_its_size_is_the_share_of_all_clients_and_one_at_the_least(share, clients, seed):
    pool = FixedPool(share=share).malicious(1, clients, seed)
    assert len(pool) == max(1, round(share * clients))
    assert pool <= set(range(clients))


@pytest.mark.parametrize(
    ("share", "clients", "size"),
    [(0.2, 50, 10), (0.4, 50, 20), (0.001, 50, 1), (1.0, 50, 50), (0.2, 12, 2), (0.25, 10, 2)],
)
def test_sizes_that_can_be_counted(share, clients, size):
    assert len(FixedPool(share=share).malicious(1, clients, 0)) == size


def test_a_greater_share_adds_clients_and_drops_none():
    pools = [FixedPool(share=share).malicious(1, 100, 0) for share in (0.1, 0.3, 0.9)]
    assert pools[0] < pools[1] < pools[2]


def test_after_the_last_attack_they_behave():
    schedule = FixedPool(share=0.4, last=5)
    assert schedule.last_attack() == 5
    attacked = [bool(schedule.malicious(index, 50, 0)) for index in range(1, 31)]
    assert attacked == [True] * 5 + [False] * 25
    for index in range(6, 31):
        assert not any(person.is_malicious for person in participants(schedule, index, 50, 10, 0))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"share": 0.0}, "share must be > 0, got 0"),
        ({"share": 1.5}, "share must be <= 1, got 1.5"),
        ({"last": 0}, "last must be >= 1, got 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        FixedPool(**settings)
