"""Rounds on the toy's set that bring every part of DataDefense into play."""

import torch
from tests.defenses.datadefense import sets, toys

from datadefense.core.rng import generator

KINDS = ("attacked", "noise", "majority", "patient")


def updates_of(kind, index, params, clients=6):
    if kind == "attacked":
        return toys.attacked_round(clients, 2).updates
    if kind == "noise":
        noise = torch.randn(clients, len(params), generator=generator(index, kind))
        return 0.4 * noise * torch.linspace(0.5, 2, clients)[:, None]
    return sets.hostile(kind, clients, params, index)


def play(defense, server, kind, rounds):
    """Return what each round gave, and the state after the last."""
    params = toys.released()
    state, results = defense.init(server, params), []
    for index in range(1, rounds + 1):
        round = toys.round_of(updates_of(kind, index, params), index, params)
        results.append(defense.aggregate(state, round, server))
        state, params = results[-1].state, results[-1].params
    return results
