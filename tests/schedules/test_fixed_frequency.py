"""Outsiders who come every so many rounds, and where they sit."""

import pytest

from datadefense.core.settings import SettingsError
from datadefense.schedules import FixedFrequency, participants
from datadefense.schedules.base import OUTSIDER


def attacked_rounds(schedule, rounds=40):
    return [
        index
        for index in range(1, rounds + 1)
        if any(person.is_malicious for person in participants(schedule, index, 50, 10, 0))
    ]


def test_attacks_come_in_rounds_1_11_21():
    assert attacked_rounds(FixedFrequency(period=10)) == [1, 11, 21, 31]
    assert attacked_rounds(FixedFrequency(period=1), rounds=5) == [1, 2, 3, 4, 5]
    assert attacked_rounds(FixedFrequency(period=7, first=3, last=20)) == [3, 10, 17]
    assert attacked_rounds(FixedFrequency(first=4, last=4)) == [4]


def test_turns_count_the_attacks():
    schedule = FixedFrequency(period=7, first=3)
    assert [schedule.turn(index) for index in attacked_rounds(schedule)] == [0, 1, 2, 3, 4, 5]


def test_its_last_attack_is_the_one_that_was_set():
    assert FixedFrequency().last_attack() is None
    assert FixedFrequency(last=20).last_attack() == 20


def test_the_attacker_takes_a_random_place():
    schedule = FixedFrequency(period=1)
    places = [
        [person.is_malicious for person in participants(schedule, index, 50, 10, 0)].index(True)
        for index in range(1, 201)
    ]
    assert set(places) == set(range(10))
    assert participants(schedule, 1, 50, 10, 0)[places[0]].client_id == OUTSIDER


def test_attackers_must_fit_into_a_round():
    FixedFrequency(attackers=3).check(20, 3)
    with pytest.raises(SettingsError, match="attackers must be <= clients_per_round, got 4 of 3"):
        FixedFrequency(attackers=4).check(20, 3)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"period": 0}, "period must be >= 1, got 0"),
        ({"first": 0}, "first must be >= 1, got 0"),
        ({"first": 5, "last": 4}, "last must be >= 5, got 4"),
        ({"attackers": 0}, "attackers must be >= 1, got 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        FixedFrequency(**settings)
