import pytest
from hypothesis import given
from hypothesis import strategies as st

from datadefense.attacks.schedule import EXTRA, FixedFrequency, FixedPool, Never
from datadefense.core.settings import SettingsError


def attacked_rounds(schedule, rounds=40, clients=50, slots=10, seed=0):
    return [
        index
        for index in range(1, rounds + 1)
        if any(person.attacks for person in schedule.round(index, clients, slots, seed))
    ]


def test_fixed_frequency_comes_in_rounds_1_11_21():
    assert attacked_rounds(FixedFrequency()) == [1, 11, 21, 31]
    assert attacked_rounds(FixedFrequency(period=1), rounds=5) == [1, 2, 3, 4, 5]
    assert attacked_rounds(FixedFrequency(period=7, first=3, last=20)) == [3, 10, 17]
    assert attacked_rounds(FixedFrequency(first=4, last=4)) == [4]
    assert attacked_rounds(Never()) == []


@given(st.integers(1, 30), st.integers(2, 12), st.integers(0, 5))
def test_a_round_is_full_and_nobody_is_there_twice(index, slots, seed):
    for schedule in (Never(), FixedFrequency(period=2, attackers=2), FixedPool(5)):
        people = schedule.round(index, 15, slots, seed)
        assert len(people) == slots
        assert len({person.client_id for person in people}) == slots
        assert people == schedule.round(index, 15, slots, seed)


def test_the_attacker_takes_a_random_slot():
    schedule = FixedFrequency(period=1)
    slots = [
        [person.attacks for person in schedule.round(index, 50, 10, 0)].index(True)
        for index in range(1, 201)
    ]
    assert set(slots) == set(range(10))
    assert schedule.round(1, 50, 10, 0)[slots[0]].client_id == EXTRA


def test_the_pool_is_drawn_once_and_attacks_when_it_is_there():
    schedule = FixedPool(size=20)
    pool = schedule.pool(200, seed=3)
    assert len(pool) == 20
    seen = set()
    for index in range(1, 200):
        for person in schedule.round(index, 200, 10, seed=3):
            assert person.attacks == (person.client_id in pool)
            seen |= {person.client_id} if person.attacks else set()
    assert seen == pool
    assert attacked_rounds(FixedPool(20, last=5), rounds=30)[-1] <= 5


@pytest.mark.parametrize(
    ("schedule", "clients", "slots", "message"),
    [
        (Never(), 5, 6, "clients_per_round must be in 1..clients, got 6 of 5 clients"),
        (Never(), 5, 0, "got 0 of 5"),
        (FixedFrequency(attackers=4), 20, 3, "attackers must be <= clients_per_round, got 4 of 3"),
        (FixedPool(30), 20, 5, "pool size must be <= clients, got 30 of 20"),
    ],
)
def test_rounds_that_cannot_be(schedule, clients, slots, message):
    with pytest.raises(SettingsError, match=message):
        schedule.check(clients, slots)


def test_bad_settings():
    for make in (
        lambda: FixedFrequency(period=0),
        lambda: FixedFrequency(first=0),
        lambda: FixedFrequency(first=5, last=4),
        lambda: FixedFrequency(attackers=0),
        lambda: FixedPool(size=0),
    ):
        with pytest.raises(SettingsError):
            make()
