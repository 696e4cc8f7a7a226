"""An attacker of the tiny federation: its bench, its situation, and what it sends."""

import copy
from dataclasses import replace

import torch
from tests.simulation.tiny import tiny_federation
from torch.nn.functional import cross_entropy

from datadefense.attacks.base import Situation
from datadefense.attacks.pgd import Pgd
from datadefense.training import Bench, Sgd

FEDERATION = tiny_federation()


def situation(**changes):
    base = Situation(
        index=2,
        start=FEDERATION.start,
        previous=None,
        num_examples=400,
        attacker=(0, 1),
        training=Sgd(1, 8, 0.05),
        augment=None,
        seed=0,
        first=FEDERATION.start,
    )
    return replace(base, **changes)


def bench():
    return Bench(copy.deepcopy(FEDERATION.module), FEDERATION.layout)


def update_of(twist, loot=FEDERATION.loot, where=None, on=None, **settings):
    attack = Pgd(epochs=3, batch_size=8, radius=None, weight_decay=0.0, twist=twist, **settings)
    return attack.update(on or bench(), loot, where or situation())


def no_dropout():
    worker = bench()
    for part in worker.module.modules():
        if isinstance(part, torch.nn.Dropout):
            part.p = 0.0
    return worker


def losses_on(update, guess):
    worker = bench()
    worker.load(FEDERATION.start + update)
    worker.module.eval()
    with torch.no_grad():
        return [float(cross_entropy(worker.module(e.inputs), e.labels)) for e in guess]
