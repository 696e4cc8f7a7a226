"""Schedules: in which rounds attackers come, and who they are.

A schedule is asked before each round who takes part. It draws from generators named by seed and
round, so its answer does not depend on what happened before.
"""

from abc import ABC, abstractmethod
from dataclasses import dataclass

import torch

from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError, check_int, setting

EXTRA = "attacker"
"""Id of an attacker that is not one of the federation's clients."""


@dataclass(frozen=True, slots=True)
class Participant:
    """One slot of a round: an honest client by number, or an attacker."""

    client_id: int | str
    attacks: bool


class Schedule(ABC):
    """Who takes part in a round."""

    __slots__ = ()

    @abstractmethod
    def round(self, index: int, clients: int, slots: int, seed: int) -> tuple[Participant, ...]:
        """Return the participants of round ``index`` (from 1) in the order of their slots."""

    def turn(self, index: int) -> int:
        """Return the number of the attack in round ``index``, for attackers who take turns."""
        return index

    def check(self, clients: int, slots: int) -> None:
        """Raise if a round of ``slots`` cannot be drawn from ``clients``."""
        if not 1 <= slots <= clients:
            raise SettingsError(
                f"clients_per_round must be in 1..clients, got {slots} of {clients} clients"
            )


def draw_clients(index: int, clients: int, count: int, seed: int) -> list[int]:
    """Draw ``count`` different clients for a round."""
    order = torch.randperm(clients, generator=generator(seed, "sample", index))
    return [int(client) for client in order[:count]]


def honest_round(index: int, clients: int, slots: int, seed: int) -> tuple[Participant, ...]:
    """Return a round without attackers."""
    return tuple(Participant(client, False) for client in draw_clients(index, clients, slots, seed))


@dataclass(frozen=True, slots=True)
class Never(Schedule):
    """No attacker ever comes."""

    def round(self, index: int, clients: int, slots: int, seed: int) -> tuple[Participant, ...]:
        """Return honest clients only."""
        return honest_round(index, clients, slots, seed)


@dataclass(frozen=True, slots=True)
class FixedFrequency(Schedule):
    """Attackers come every ``period`` rounds, from ``first`` on and until ``last``.

    They are extra clients that take the place of honest ones, in random slots. ``period=1`` is an
    attack in every round, ``last=first`` a single shot, ``last=t`` one that stops.
    """

    period: int = setting(10, "rounds from one attack to the next")
    first: int = setting(1, "round of the first attack")
    last: int | None = setting(None, "round after which no attack comes; none: never")
    attackers: int = setting(1, "attackers in an attacked round")

    def __post_init__(self) -> None:
        check_int("period", self.period, 1)
        check_int("first", self.first, 1)
        check_int("attackers", self.attackers, 1)
        if self.last is not None:
            check_int("last", self.last, self.first)

    def check(self, clients: int, slots: int) -> None:
        """Attackers must fit into a round."""
        Schedule.check(self, clients, slots)
        if self.attackers > slots:
            raise SettingsError(
                f"attackers must be <= clients_per_round, got {self.attackers} of {slots}"
            )

    def turn(self, index: int) -> int:
        """Return the number of the attack in round ``index``, from 0."""
        return (index - self.first) // self.period

    def attacked(self, index: int) -> bool:
        """Say whether attackers come in this round."""
        over = self.last is not None and index > self.last
        return not over and index >= self.first and (index - self.first) % self.period == 0

    def round(self, index: int, clients: int, slots: int, seed: int) -> tuple[Participant, ...]:
        """Return the round, with the attackers in random slots if it is attacked."""
        if not self.attacked(index):
            return honest_round(index, clients, slots, seed)
        honest = draw_clients(index, clients, slots - self.attackers, seed)
        people = [Participant(client, False) for client in honest] + [
            Participant(EXTRA if self.attackers == 1 else f"{EXTRA}-{j}", True)
            for j in range(self.attackers)
        ]
        order = torch.randperm(slots, generator=generator(seed, "slots", index))
        return tuple(people[int(j)] for j in order)


@dataclass(frozen=True, slots=True)
class FixedPool(Schedule):
    """Some of the federation's own clients are malicious and attack whenever they are drawn."""

    size: int = setting(20, "malicious clients among all")
    last: int | None = setting(None, "round after which they behave; none: never")

    def __post_init__(self) -> None:
        check_int("size", self.size, 1)
        if self.last is not None:
            check_int("last", self.last, 1)

    def check(self, clients: int, slots: int) -> None:
        """The pool must be part of the clients."""
        Schedule.check(self, clients, slots)
        if self.size > clients:
            raise SettingsError(f"pool size must be <= clients, got {self.size} of {clients}")

    def pool(self, clients: int, seed: int) -> frozenset[int]:
        """Return the malicious clients: drawn once from the seed."""
        order = torch.randperm(clients, generator=generator(seed, "pool"))
        return frozenset(int(client) for client in order[: self.size])

    def round(self, index: int, clients: int, slots: int, seed: int) -> tuple[Participant, ...]:
        """Return clients drawn from all; those of the pool attack."""
        pool = self.pool(clients, seed)
        active = self.last is None or index <= self.last
        return tuple(
            Participant(client, active and client in pool)
            for client in draw_clients(index, clients, slots, seed)
        )
