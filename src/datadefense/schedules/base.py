"""A schedule: who attacks when. Which honest clients take part is drawn apart from it."""

from abc import ABC
from dataclasses import dataclass
from typing import ClassVar

import torch

from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError

OUTSIDER = "attacker"
"""Id of an attacker that is not one of the federation's clients."""


@dataclass(frozen=True, slots=True)
class Participant:
    """One place in a round: an honest client by number, or an attacker."""

    client_id: int | str
    is_malicious: bool


class Schedule(ABC):
    """Who attacks in which round. A subclass is a frozen dataclass: its fields are its settings.

    Attackers are clients of the federation, who attack when they are drawn, or outsiders who take
    the places of honest clients. Answers depend on the round and the seed alone.
    """

    __slots__ = ()
    name: ClassVar[str]

    def malicious(self, index: int, clients: int, seed: int) -> frozenset[int]:
        """Return which of the federation's clients attack if they are drawn in round ``index``."""
        return frozenset()

    def outsiders(self, index: int) -> int:
        """Return how many attackers from outside take part in round ``index`` (from 1)."""
        return 0

    def turn(self, index: int) -> int:
        """Return the number of the attack in round ``index``, for attackers who take turns."""
        return index

    def last_attack(self) -> int | None:
        """Return the round after which nobody attacks; None: the attacks do not stop."""
        return None

    def check(self, clients: int, slots: int) -> None:
        """Raise if a round of ``slots`` cannot be drawn from ``clients``."""
        if not 1 <= slots <= clients:
            raise SettingsError(
                f"clients_per_round must be in 1..clients, got {slots} of {clients} clients"
            )


def draw_clients(index: int, clients: int, count: int, seed: int) -> list[int]:
    """Draw ``count`` different clients for a round, each as likely as any other."""
    order = torch.randperm(clients, generator=generator(seed, "sample", index))
    return [int(client) for client in order[:count]]


def participants(
    schedule: Schedule, index: int, clients: int, slots: int, seed: int
) -> tuple[Participant, ...]:
    """Return who takes part in round ``index``, in the order of their places.

    Clients are drawn for all places that outsiders leave; outsiders get random places.
    """
    outsiders = schedule.outsiders(index)
    if outsiders > slots:
        raise SettingsError(
            f"outsiders must be <= clients_per_round, got {outsiders} of {slots} in round {index}"
        )
    malicious = schedule.malicious(index, clients, seed)
    people = [
        Participant(client, client in malicious)
        for client in draw_clients(index, clients, slots - outsiders, seed)
    ]
    if not outsiders:
        return tuple(people)
    people += [
        Participant(OUTSIDER if outsiders == 1 else f"{OUTSIDER}-{j}", True)
        for j in range(outsiders)
    ]
    order = torch.randperm(slots, generator=generator(seed, "slots", index))
    return tuple(people[int(j)] for j in order)
