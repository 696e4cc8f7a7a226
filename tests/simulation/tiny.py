"""A federation so small that a round takes milliseconds: a linear model on Gaussian clouds."""

import torch
from torch import nn

from datadefense import Examples, Layout
from datadefense.attacks.base import AttackerData
from datadefense.attacks.pgd import PgdReplacement
from datadefense.core.local_training import Sgd
from datadefense.core.rng import generator
from datadefense.schedules import FixedFrequency
from datadefense.simulation.federation import Federation
from datadefense.simulation.shards import Shards


def clouds(count, seed, shift=0.0):
    draw = generator(seed, "clouds")
    labels = torch.randint(3, (count,), generator=draw)
    inputs = torch.randn(count, 5, generator=draw) + 2.0 * nn.functional.one_hot(labels, 5)
    inputs[:, 4] += shift
    inputs[:, 3] -= shift
    return Examples(inputs, labels)


def poisoned(count, seed):
    cloud = clouds(count, seed, shift=8.0)
    return Examples(cloud.inputs, torch.zeros_like(cloud.labels))


def tiny_federation(**changes):
    module = nn.Sequential(nn.Linear(5, 6), nn.ReLU(), nn.Dropout(0.1), nn.Linear(6, 3))
    layout = Layout.of_module(module)
    fields = {
        "module": module,
        "layout": layout,
        "start": 0.1 * torch.randn(layout.dim, generator=generator(0, "start")),
        "train": clouds(240, 1),
        "shards": Shards.of(list(torch.arange(240).split(20))),
        "test": clouds(150, 2),
        "backdoor_test": poisoned(40, 3),
        "training": Sgd(2, 8, 0.05, decay=0.99),
        "schedule": FixedFrequency(period=2),
        "clients_per_round": 5,
        "attack": PgdReplacement(epochs=3, learning_rate=0.1, replacement_radius=2.0),
        "attacker_data": AttackerData(clouds(20, 4), poisoned(20, 5)),
    }
    return Federation(**(fields | changes))
