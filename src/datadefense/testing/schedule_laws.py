"""Laws that every schedule obeys: ``check_schedule(MySchedule())``; a broken one says which."""

import random
from collections.abc import Callable
from dataclasses import replace
from itertools import product
from typing import Any, NamedTuple

import numpy as np
import torch

from datadefense.core.settings import SettingsError
from datadefense.schedules.base import Schedule
from datadefense.testing.broken import naming, require, require_plugin
from datadefense.testing.settings_laws import require_name, require_plain_settings

ScheduleLaw = Callable[[Schedule], None]
ROUNDS = range(1, 41)
"""Rounds that a schedule is asked about."""
ROUNDS_AFTER = 40
"""Rounds after the last attack that a schedule is asked about."""
CLIENTS = (1, 7, 50)
"""Sizes of federations that a schedule is asked about."""
ROUND_SIZES = ((1, 1), (7, 3), (50, 10), (50, 50))
"""Numbers of all clients and of clients in a round."""
SEEDS = (0, 1)


class Answer(NamedTuple):
    """What a schedule says of a round."""

    malicious: frozenset[int]
    outsiders: int
    turn: int


def settings_are_plain(schedule: Schedule) -> None:
    """It has a name and is a frozen dataclass whose settings can be stored and read back."""
    require_name(schedule)
    require_plain_settings(schedule)


def malicious_are_clients(schedule: Schedule) -> None:
    """`malicious` gives a frozenset of numbers of clients, from 0 to below ``clients``."""
    for clients, seed, index in product(CLIENTS, SEEDS, ROUNDS):
        found: Any = schedule.malicious(index, clients, seed)
        call = f"malicious({index}, {clients}, {seed})"
        require(isinstance(found, frozenset), f"{call} gave {found!r}, not a frozenset")
        wrong = [who for who in found if type(who) is not int or not 0 <= who < clients]
        require(not wrong, f"{call} gave {wrong}, not integers in 0..{clients - 1}")


def outsiders_are_counted(schedule: Schedule) -> None:
    """`outsiders` gives an integer >= 0, and what `check` lets pass has room for all of them."""
    for index in ROUNDS:
        count: Any = schedule.outsiders(index)
        counts = type(count) is int and count >= 0
        require(counts, f"outsiders({index}) gave {count!r}, not an integer >= 0")
    for clients, slots in ROUND_SIZES:
        if not accepts(schedule, clients, slots):
            continue
        for index in ROUNDS:
            count = schedule.outsiders(index)
            require(
                count <= slots,
                f"check({clients}, {slots}) passes, and round {index} has {count} > {slots} "
                "outsiders",
            )


def impossible_rounds_are_refused(schedule: Schedule) -> None:
    """`check` raises SettingsError for a round of nobody, and for one of more than all clients."""
    for clients, slots in ((5, 0), (5, 6)):
        refused = not accepts(schedule, clients, slots)
        require(refused, f"check({clients}, {slots}) passes: it must call Schedule.check")


def answers_depend_on_the_arguments_alone(schedule: Schedule) -> None:
    """Asked again, in another order and of a copy, it says the same.

    A run that is resumed asks again, and every process that trains clients has a copy.
    """
    copy = replace(schedule)  # type: ignore[type-var] # a dataclass: see settings_are_plain
    for clients, seed in product(CLIENTS, SEEDS):
        first = {index: answer(schedule, index, clients, seed) for index in ROUNDS}
        for asked, index in product((schedule, copy), reversed(ROUNDS)):
            again = answer(asked, index, clients, seed)
            require(
                again == first[index],
                f"round {index} of {clients} clients, seed {seed}: it said {first[index]}, "
                f"then {again}",
            )


def randomness_of_others_stays(schedule: Schedule) -> None:
    """It neither seeds nor draws from the random generators that the whole process shares.

    If it did, honest clients would train differently because somebody else attacks. A generator of
    its own comes from ``datadefense.core.rng.generator(seed, "name")``.
    """
    with torch.random.fork_rng(devices=[]):
        before = shared_randomness()
        for index in ROUNDS:
            answer(schedule, index, 50, 0)
        for name, state in shared_randomness().items():
            require(state == before[name], f"it used the shared random generator of {name}")


def turns_never_go_back(schedule: Schedule) -> None:
    """In attacked rounds `turn` gives integers >= 0, none below the one before."""
    last = 0
    for index in ROUNDS:
        said = answer(schedule, index, 50, 0)
        if not said.malicious and not said.outsiders:
            continue
        turn: Any = said.turn
        counts = type(turn) is int and turn >= 0
        require(counts, f"turn({index}) gave {turn!r}, not an integer >= 0")
        require(turn >= last, f"turn({index}) = {turn} < {last} of an earlier attack")
        last = turn


def nobody_attacks_after_the_last_attack(schedule: Schedule) -> None:
    """`last_attack` is None or a round; after that round nobody attacks."""
    last: Any = schedule.last_attack()
    if last is None:
        return
    require(type(last) is int and last >= 1, f"last_attack() gave {last!r}, not a round >= 1")
    for index in range(last + 1, last + ROUNDS_AFTER + 1):
        said = answer(schedule, index, 50, 0)
        attackers = len(said.malicious) + said.outsiders
        require(
            attackers == 0,
            f"{attackers} attackers in round {index}, after last_attack() = {last}",
        )


SCHEDULE_LAWS: tuple[ScheduleLaw, ...] = (
    settings_are_plain,
    malicious_are_clients,
    outsiders_are_counted,
    impossible_rounds_are_refused,
    answers_depend_on_the_arguments_alone,
    randomness_of_others_stays,
    turns_never_go_back,
    nobody_attacks_after_the_last_attack,
)


def check_schedule(schedule: Schedule) -> None:
    """Hold a schedule to every law; takes a fraction of a second.

    Raises BrokenLawError (an AssertionError) with the law's name.

    >>> from datadefense.schedules import FixedPool
    >>> check_schedule(FixedPool(share=0.3))
    """
    require_plugin(schedule, Schedule, check_schedule)
    for law in SCHEDULE_LAWS:
        with naming(schedule, law):
            law(schedule)


def answer(schedule: Schedule, index: int, clients: int, seed: int) -> Answer:
    """Ask a schedule all about a round."""
    malicious = schedule.malicious(index, clients, seed)
    return Answer(malicious, schedule.outsiders(index), schedule.turn(index))


def accepts(schedule: Schedule, clients: int, slots: int) -> bool:
    """Say whether `check` lets rounds of ``slots`` of ``clients`` pass."""
    try:
        schedule.check(clients, slots)
    except SettingsError:
        return False
    return True


def shared_randomness() -> dict[str, object]:
    """Return the states of the random generators that the whole process shares."""
    numpy: Any = np.random.get_state(legacy=False)  # noqa: NPY002 # what a schedule must not use
    return {
        "torch": torch.get_rng_state().tolist(),
        "random": random.getstate(),
        "numpy": (numpy["state"]["key"].tobytes(), numpy["state"]["pos"]),
    }
