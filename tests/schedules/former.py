"""Who takes part in a round, as it was written before schedules were plug-ins: a slow twin."""

import torch

from datadefense.core.rng import generator


def drawn(index, clients, count, seed):
    order = torch.randperm(clients, generator=generator(seed, "sample", index)).tolist()
    return [order[place] for place in range(count)]


def former_frequency(index, clients, slots, seed, *, period, first, last, attackers):
    """Rows of (client, attacks): outsiders come in some rounds, and places are shuffled then."""
    rounds = range(first, (index if last is None else min(index, last)) + 1, period)
    if index not in rounds:
        return [(client, False) for client in drawn(index, clients, slots, seed)]
    people = [(client, False) for client in drawn(index, clients, slots - attackers, seed)]
    if attackers == 1:
        people.append(("attacker", True))
    else:
        people.extend((f"attacker-{number}", True) for number in range(attackers))
    order = torch.randperm(slots, generator=generator(seed, "slots", index)).tolist()
    return [people[place] for place in order]


def former_pool(index, clients, slots, seed, *, size, last):
    """Rows of (client, attacks): a pool of so many clients was drawn once."""
    order = torch.randperm(clients, generator=generator(seed, "pool")).tolist()
    active = last is None or index <= last
    return [
        (client, active and client in order[:size]) for client in drawn(index, clients, slots, seed)
    ]
