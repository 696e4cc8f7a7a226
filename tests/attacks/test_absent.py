"""Attackers that send nothing leave what a perfect defense would: the honest clients alone."""

import torch
from tests.attacks.situations import update_of
from tests.simulation.tiny import tiny_federation

from datadefense.attacks.absent import Absent
from datadefense.core.server import Server
from datadefense.defenses import FedAvg
from datadefense.schedules import FixedFrequency
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import begin, simulate


def test_nothing_is_sent_that_a_gate_lets_in():
    assert update_of(Absent()).isnan().all()


def test_averaging_then_has_the_honest_clients_of_the_round_and_nobody_else():
    federation = tiny_federation(attack=Absent(), schedule=FixedFrequency(period=1))
    with Pool(federation) as pool:
        rounds = simulate(
            federation,
            FedAvg(),
            Server(),
            pool,
            progress=begin(federation, FedAvg(), Server()),
            rounds=2,
        )
        for record, progress in rounds:
            assert record.attackers
            assert not set(record.attackers) & set(record.clients)
            assert len(record.weights) == federation.clients_per_round - len(record.attackers)
            assert torch.isfinite(progress.params).all()
