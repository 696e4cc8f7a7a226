"""An attacker of the tiny federation: its trainer, its context, and what it sends."""

import copy
from dataclasses import replace

import torch
from tests.simulation.tiny import tiny_federation
from torch.nn.functional import cross_entropy

from datadefense.attacks.base import AttackContext
from datadefense.core.local_training import Sgd, Trainer

FEDERATION = tiny_federation()
OWN = {"epochs": 3, "learning_rate": 0.02}
"""How attackers train who have passes and a step size of their own."""


def context(**changes):
    base = AttackContext(
        index=2,
        start=FEDERATION.start,
        previous=None,
        num_examples=400,
        attacker=(0, 1),
        training=Sgd(1, 8, 0.05),
        augment=None,
        seed=0,
        first=FEDERATION.start,
        clients=10,
    )
    return replace(base, **changes)


def trainer():
    return Trainer(copy.deepcopy(FEDERATION.module), FEDERATION.layout)


def update_of(attack, data=FEDERATION.attacker_data, where=None, on=None):
    return attack.update(on or trainer(), data, where or context())


def no_dropout():
    worker = trainer()
    for part in worker.module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    return worker


def losses_on(update, guess):
    worker = trainer()
    worker.load(FEDERATION.start + update)
    worker.module.eval()
    with torch.no_grad():
        return [float(cross_entropy(worker.module(e.inputs), e.labels)) for e in guess]
