"""Who takes part in a round: the same bits as ever, everybody once, and nobody without a client."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.schedules.former import drawn, former_frequency, former_pool

from datadefense.core.settings import SettingsError
from datadefense.schedules import (
    FixedFrequency,
    FixedPool,
    Never,
    Participant,
    Schedule,
    participants,
)

ROUNDS, SEEDS = st.integers(1, 30), st.integers(0, 5)


def rows(schedule, index, clients, slots, seed):
    people = participants(schedule, index, clients, slots, seed)
    return [(person.client_id, person.is_malicious) for person in people]


@given(ROUNDS, st.integers(2, 12), SEEDS)
def test_a_round_is_full_and_nobody_is_there_twice(index, slots, seed):
    for schedule in (Never(), FixedFrequency(period=2, attackers=2), FixedPool(share=1 / 3)):
        people = participants(schedule, index, 15, slots, seed)
        assert len(people) == slots
        assert len({person.client_id for person in people}) == slots
        assert people == participants(schedule, index, 15, slots, seed)


@given(ROUNDS, st.integers(1, 15), SEEDS)
def test_without_attackers_the_bits_are_the_former_ones(index, slots, seed):
    expected = [(client, False) for client in drawn(index, 15, slots, seed)]
    assert rows(Never(), index, 15, slots, seed) == expected


@given(
    ROUNDS,
    st.integers(3, 12),
    SEEDS,
    st.fixed_dictionaries(
        {
            "period": st.integers(1, 4),
            "first": st.integers(1, 4),
            "last": st.none() | st.integers(4, 30),
            "attackers": st.integers(1, 3),
        }
    ),
)
def test_with_outsiders_the_bits_are_the_former_ones(index, slots, seed, settings):
    expected = former_frequency(index, 15, slots, seed, **settings)
    assert rows(FixedFrequency(**settings), index, 15, slots, seed) == expected


@given(ROUNDS, st.integers(1, 15), SEEDS, st.integers(1, 15), st.none() | st.integers(1, 30))
def test_with_a_pool_the_bits_are_the_former_ones(index, slots, seed, size, last):
    expected = former_pool(index, 15, slots, seed, size=size, last=last)
    assert rows(FixedPool(share=size / 15, last=last), index, 15, slots, seed) == expected


@dataclass(frozen=True)
class Both(Schedule):
    """Two outsiders beside a client who attacks when it is drawn."""

    name: ClassVar[str] = "both"

    def malicious(self, index, clients, seed):
        return frozenset({0, 1, 2, 3})

    def outsiders(self, index):
        return 2


def test_a_schedule_may_have_outsiders_and_malicious_clients():
    seen = set()
    for index in range(1, 20):
        people = participants(Both(), index, 10, 6, 0)
        outside = [person for person in people if isinstance(person.client_id, str)]
        assert {person.client_id for person in outside} == {"attacker-0", "attacker-1"}
        assert all(person.is_malicious for person in outside)
        inside = [person for person in people if person not in outside]
        assert [p.is_malicious for p in inside] == [p.client_id in range(4) for p in inside]
        seen |= {person.client_id for person in inside if person.is_malicious}
    assert seen == set(range(4))


@given(ROUNDS, st.integers(2, 12), SEEDS)
def test_honest_clients_are_those_drawn_without_the_schedule(index, slots, seed):
    for schedule in (
        Never(),
        FixedFrequency(period=2, attackers=2),
        FixedPool(share=1 / 3),
        Both(),
    ):
        people = participants(schedule, index, 15, slots, seed)
        inside = {person.client_id for person in people if isinstance(person.client_id, int)}
        assert inside == set(drawn(index, 15, slots - schedule.outsiders(index), seed))


def test_more_outsiders_than_places_are_refused_with_the_numbers():
    with pytest.raises(SettingsError, match="outsiders must be <= .*, got 2 of 1 in round 3"):
        participants(Both(), 3, 10, 1, 0)


def test_by_itself_a_schedule_lets_nobody_attack_and_has_no_end():
    schedule = Never()
    assert schedule.malicious(1, 10, 0) == frozenset()
    assert schedule.outsiders(1) == 0
    assert schedule.last_attack() is None
    assert schedule.turn(7) == 7


@pytest.mark.parametrize(
    ("clients", "slots", "message"),
    [
        (5, 6, "clients_per_round must be in 1..clients, got 6 of 5 clients"),
        (5, 0, "clients_per_round must be in 1..clients, got 0 of 5 clients"),
    ],
)
@pytest.mark.parametrize("schedule", [Never(), FixedFrequency(), FixedPool()])
def test_rounds_that_cannot_be(schedule, clients, slots, message):
    with pytest.raises(SettingsError, match=message):
        schedule.check(clients, slots)


def test_a_participant_is_a_value():
    assert Participant(3, True) == Participant(3, True) != Participant(3, False)
