"""SoDa: the loss term by term, and what it does to the update."""

import math

import pytest
import torch
from tests.attacks.situations import FEDERATION, OWN, context, no_dropout, trainer, update_of

from datadefense.attacks.black_box import BlackBox
from datadefense.attacks.lp import honest_update
from datadefense.attacks.soda import Soda
from datadefense.core.settings import SettingsError

DATA = FEDERATION.attacker_data


@pytest.mark.parametrize(("near", "angle"), [(0.0, 0.0), (0.1, 0.0), (0.0, 100.0), (0.3, 20.0)])
def test_the_loss_is_the_sum_of_its_terms(near, angle):
    where, worker = context(), no_dropout()
    honest = (where.start + honest_update(no_dropout(), DATA, where)).tolist()
    loss = Soda(distance_weight=near, angle_weight=angle).loss(worker, DATA, where)
    here = (where.start + 0.1 * torch.arange(len(where.start)).cos()).tolist()
    worker.load(torch.tensor(here))
    inputs, labels = DATA.poison.inputs, DATA.poison.labels
    value = loss(worker.module, inputs, labels).item()
    logs = worker.module(inputs).double().log_softmax(1).tolist()
    expected = -sum(row[int(y)] for row, y in zip(logs, labels, strict=True)) / len(labels)
    expected += near * math.sqrt(sum((x - y) ** 2 for x, y in zip(here, honest, strict=True)))
    inner = sum(x * y for x, y in zip(here, honest, strict=True))
    lengths = math.sqrt(sum(x * x for x in here) * sum(y * y for y in honest))
    expected += angle * (1 - inner / lengths)
    assert value == pytest.approx(expected, rel=1e-4, abs=1e-4)


def test_without_weights_it_is_plain_poisoned_training():
    sent = update_of(Soda(**OWN, distance_weight=0.0, angle_weight=0.0))
    assert torch.allclose(sent, update_of(BlackBox(**OWN)), atol=1e-6)


def test_it_is_closer_to_an_honest_training_than_without():
    honest = honest_update(trainer(), DATA, context())
    near, far = update_of(Soda(**OWN)), update_of(BlackBox(**OWN))
    assert float((near - honest).norm()) < 0.7 * float((far - honest).norm())


def test_a_model_of_zeros_has_a_finite_update():
    where = context(start=torch.zeros_like(FEDERATION.start))
    assert bool(update_of(Soda(**OWN), where=where).isfinite().all())


@pytest.mark.parametrize("name", ["distance_weight", "angle_weight"])
def test_bad_settings(name):
    with pytest.raises(SettingsError, match=f"{name} must be >= 0"):
        Soda(**{name: -1.0})
