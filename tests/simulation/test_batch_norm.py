"""A ResNet with BatchNorm, trained from scratch: every defense, any number of workers."""

import pytest
import torch
from tests.simulation import played
from tests.simulation.played import without_times
from tests.small_resnet import resnet_federation, resnet_server

from datadefense import DEFENSES
from datadefense.core.buffers import FreshStatisticsWarning
from datadefense.schedules import Never

SLOW_STARTERS = {"ndc": 8, "weak-dp": 8, "sparsefed": 14, "fltrust": 8}
"""Rounds that rules need which bound a step: statistics have the longest way in the beginning."""
SEEDS = {"datadefense-paper": 1}
"""The printed algorithm weighs distances by a theta that is drawn: with seed 0 nobody counts."""


def play(federation, name, rounds, workers=0, progress=None):
    server = resnet_server(federation, SEEDS.get(name, 0))
    return played.play(federation, name, rounds, workers, progress, server=server)


@pytest.mark.parametrize("name", DEFENSES)
def test_every_defense_learns(name):
    federation = resnet_federation(attack=None, attacker_data=None, schedule=Never())
    records, progress = play(federation, name, SLOW_STARTERS.get(name, 4))
    assert records[-1].ma_percent > 95
    for slot in federation.layout.slots:
        if slot.is_variance:
            assert (progress.params[slot.start : slot.stop] >= 0).all()


def test_fresh_statistics_that_are_kept_learn_nothing_and_warn():
    with pytest.warns(FreshStatisticsWarning, match="will not learn"):
        federation = resnet_federation("keep", attack=None, attacker_data=None, schedule=Never())
    records, _ = play(federation, "fedavg", 4)
    assert records[-1].ma_percent < 40


@pytest.mark.parametrize("name", ["fltrust", "datadefense"])
def test_the_same_bits_for_any_number_of_workers_and_after_a_stop(name):
    federation = resnet_federation()
    records, whole = play(federation, name, 3)
    others, other = play(federation, name, 3, workers=2)
    assert torch.equal(other.params, whole.params)
    assert without_times(others) == without_times(records)
    first, middle = play(federation, name, 1)
    second, end = play(federation, name, 3, progress=middle)
    assert torch.equal(end.params, whole.params)
    assert without_times(first + second) == without_times(records)


@pytest.mark.parametrize("policy", ["aggregate", "keep"])
def test_the_counter_and_what_is_kept_are_the_same_for_any_workers(policy):
    """A cumulative average (momentum=None) divides by the counter, which no vector has."""
    if policy == "keep":
        with pytest.warns(FreshStatisticsWarning):
            federation = resnet_federation(policy)
    else:
        federation = resnet_federation(policy)
    for part in federation.module.modules():
        if isinstance(part, torch.nn.BatchNorm2d):
            part.momentum = None
    records, whole = play(federation, "fedavg", 2)
    others, other = play(federation, "fedavg", 2, workers=2)
    assert torch.equal(other.params, whole.params)
    assert without_times(others) == without_times(records)
