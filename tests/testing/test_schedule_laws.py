"""Every registered schedule keeps every law; for each law there is a schedule that breaks it."""

import random
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pytest
import torch

from datadefense.core.settings import setting
from datadefense.schedules import SCHEDULES, FixedFrequency, FixedPool, Schedule
from datadefense.testing import SCHEDULE_LAWS, BrokenLawError, check_schedule

CASES = [make() for make in SCHEDULES.values()] + [
    FixedFrequency(period=1, attackers=3),
    FixedFrequency(period=7, first=3, last=20),
    FixedFrequency(first=4, last=4),
    FixedPool(share=1.0),
    FixedPool(share=0.01, last=1),
]


@pytest.mark.parametrize("schedule", CASES, ids=repr)
def test_ours_keep_the_laws(schedule):
    check_schedule(schedule)


@dataclass(frozen=True)
class Faulty(Schedule):
    """One client and one outsider attack in every round; with a fault, break one law."""

    fault: str = setting("", "which law is broken")
    name: ClassVar[str] = "faulty"

    def malicious(self, index, clients, seed):
        if self.fault == "draws from torch":
            torch.rand(1)
        if self.fault == "draws from numpy":
            np.random.rand()  # noqa: NPY002
        if self.fault == "seeds random":
            random.seed(seed)
        if self.fault == "forgets the seed":
            return frozenset({torch.randint(clients, (), generator=UNSEEDED).item()})
        return {
            "list": [0],
            "too high": frozenset({0, clients}),
            "negative": frozenset({-1}),
            "text": frozenset({"0"}),
        }.get(self.fault, frozenset({0}))

    def outsiders(self, index):
        if self.fault == "remembers":
            asked = vars(self).get("asked", 0)
            object.__setattr__(self, "asked", asked + 1)
            return asked % 2
        faults = {"fraction": 0.5, "fewer than none": -1, "crowd": 2}
        return faults.get(self.fault, 1)

    def turn(self, index):
        return {"backwards": 100 - index, "below 0": index - 5}.get(self.fault, index)

    def last_attack(self):
        return {"no end": 10, "round 0": 0}.get(self.fault)

    def check(self, clients, slots):
        if self.fault != "no check":
            Schedule.check(self, clients, slots)


UNSEEDED = torch.Generator()

FAULTS = [
    ("list", r"malicious_are_clients: malicious\(1, 1, 0\) gave \[0\], not a frozenset"),
    ("too high", r"malicious_are_clients: .* gave \[1\], not integers in 0..0"),
    ("negative", r"malicious_are_clients: .* gave \[-1\]"),
    ("text", r"malicious_are_clients: .* gave \['0'\]"),
    ("fraction", r"outsiders_are_counted: outsiders\(1\) gave 0.5, not an integer >= 0"),
    ("fewer than none", r"outsiders_are_counted: outsiders\(1\) gave -1"),
    ("crowd", r"outsiders_are_counted: check\(1, 1\) passes, and round 1 has 2 > 1 outsiders"),
    ("no check", r"impossible_rounds_are_refused: check\(5, 0\) passes"),
    ("remembers", r"answers_depend_on_the_arguments_alone: round \d+ of 1 clients, seed 0"),
    ("forgets the seed", "answers_depend_on_the_arguments_alone"),
    ("draws from torch", "randomness_of_others_stays: it used the .* generator of torch"),
    ("draws from numpy", "randomness_of_others_stays: it used the .* generator of numpy"),
    ("seeds random", "randomness_of_others_stays: it used the .* generator of random"),
    ("backwards", r"turns_never_go_back: turn\(2\) = 98 < 99 of an earlier attack"),
    ("below 0", r"turns_never_go_back: turn\(1\) gave -4, not an integer >= 0"),
    ("no end", r"nobody_attacks_after_the_last_attack: 2 attackers in round 11"),
    ("round 0", r"nobody_attacks_after_the_last_attack: last_attack\(\) gave 0, not a round >= 1"),
]


def test_without_a_fault_it_keeps_the_laws():
    check_schedule(Faulty())


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_a_fault_is_caught(fault, message):
    with pytest.raises(BrokenLawError, match=message):
        check_schedule(Faulty(fault))


@dataclass(frozen=True)
class Nameless(Faulty):
    """Has no name."""

    name: ClassVar[str] = ""


class Loose(Faulty):
    """No dataclass of its own."""


@dataclass
class Changeable(Schedule):
    """A dataclass that is not frozen."""

    name: ClassVar[str] = "changeable"


@dataclass(frozen=True)
class Shortened(Schedule):
    """Changes a setting that it is given: read back from its text, it is another."""

    word: str = setting("abcd", "a text")
    name: ClassVar[str] = "shortened"

    def __post_init__(self):
        object.__setattr__(self, "word", self.word[:-1])


@dataclass(frozen=True)
class Unreadable(Schedule):
    """Has a setting of a type that no text can be read as."""

    share: complex = setting(0.5, "a number")
    name: ClassVar[str] = "unreadable"


@pytest.mark.parametrize(
    ("schedule", "message"),
    [
        (Nameless(), "settings_are_plain: name must be a text, got ''"),
        (Loose(), "settings_are_plain: Loose is not a frozen dataclass"),
        (Changeable(), "settings_are_plain: Changeable is not a frozen dataclass"),
        (Shortened(), "settings_are_plain: the setting word = 'abc' is read back as 'ab'"),
        (Unreadable(), "settings_are_plain: its settings cannot be read back: share must be"),
    ],
)
def test_the_law_on_settings_has_teeth(schedule, message):
    with pytest.raises(BrokenLawError, match=message):
        check_schedule(schedule)


def test_every_law_is_broken_by_somebody():
    caught = {message.partition(":")[0] for _, message in FAULTS} | {"settings_are_plain"}
    assert caught == {law.__name__ for law in SCHEDULE_LAWS}
