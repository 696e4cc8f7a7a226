"""Every attack of ours in whole rounds: one attacker, some, nobody else; and honest failures."""

import math
from dataclasses import replace

import pytest
import torch
from tests.simulation.tiny import clouds, poisoned, tiny_federation

from datadefense import Server
from datadefense.attacks import ATTACKS
from datadefense.attacks.absent import Absent
from datadefense.attacks.base import AttackerData
from datadefense.attacks.gaussian import Gaussian
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.attacks.untargeted import MaybeGuessing
from datadefense.core.outcomes import Verdict
from datadefense.core.predictor import predictor
from datadefense.defenses import FedAvg
from datadefense.schedules import FixedFrequency
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import begin, simulate


def short(attack):
    """The same with one pass of its own."""
    return replace(attack, epochs=1) if isinstance(attack, OwnTraining) else attack


CASES = [short(make()) for make in ATTACKS.values() if make is not Absent] + [
    *(make(knowledge="nothing") for make in ATTACKS.values() if issubclass(make, MaybeGuessing)),
    Gaussian(spread="honest"),
]
DATA = AttackerData(clouds(40, 4), poisoned(20, 5), (poisoned(10, 6), poisoned(10, 7)))


def play(attack, attackers, **changes):
    federation = tiny_federation(
        attack=attack,
        attacker_data=attack.holdings(DATA, 20),
        schedule=FixedFrequency(period=1, attackers=attackers),
        **changes,
    )
    server = Server(predictor(federation.module, federation.layout), clouds(40, 31), 0)
    with Pool(federation, 0) as pool:
        start = begin(federation, FedAvg(), server)
        return list(simulate(federation, FedAvg(), server, pool, progress=start, rounds=2))


@pytest.mark.parametrize("attackers", [1, 5])
@pytest.mark.parametrize("attack", CASES, ids=repr)
def test_the_gate_lets_pass_what_it_sends(attack, attackers):
    for record, progress in play(attack, attackers):
        assert bool(progress.params.isfinite().all())
        assert len(record.attackers) == attackers
        assert record.count(Verdict.REJECTED) == 0
        assert all(math.isfinite(value) for value in record.attack.values())


@pytest.mark.parametrize("attack", CASES, ids=repr)
def test_honest_trainings_that_diverge_stop_nobody(attack):
    """No honest update is finite: a rejected client is no example to follow."""
    federation = tiny_federation()
    train = replace(federation.train, inputs=torch.full_like(federation.train.inputs, math.nan))
    for _, progress in play(attack, 2, train=train):
        assert bool(progress.params.isfinite().all())
