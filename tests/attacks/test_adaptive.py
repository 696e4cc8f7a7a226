"""The attacker who knows the defense, against a slow twin of its loss and of its ball."""

import math
from dataclasses import replace

import pytest
import torch
from tests.attacks.situations import (
    FEDERATION,
    OWN,
    context,
    losses_on,
    no_dropout,
    update_of,
)
from tests.simulation.tiny import clouds, poisoned

from datadefense.attacks.adaptive import LONGEST, Adaptive
from datadefense.attacks.black_box import BlackBox
from datadefense.core.predictor import predictor
from datadefense.core.settings import SettingsError

GUESS = (clouds(30, 21), poisoned(20, 22))
LOOT = replace(FEDERATION.attacker_data, guess=GUESS)
BATCH = clouds(9, 23)


def honest_length(where):
    """The length of an honest update of the attacker's clean data, trained as a vector."""
    predict = predictor(no_dropout().module.eval(), FEDERATION.layout)
    draw = where.generator("imitation")
    trained = where.training.train(predict, where.start, LOOT.clean, draw)
    return float((trained - where.start).norm())


def radius_of(attack, where):
    """What the projection leaves of an update that is much too long."""
    worker = no_dropout()
    project = attack.after_step(worker, LOOT, where)
    worker.load(where.start + 100.0)
    project(0, False)
    return float(worker.write_update(where.start, torch.empty_like(where.start)).norm())


@pytest.mark.parametrize("reach", [0.25, 1.0, 3.0])
def test_the_radius_is_so_many_honest_updates(reach):
    where = context()
    radius = radius_of(Adaptive(reach=reach), where)
    assert radius == pytest.approx(reach * honest_length(where), rel=1e-4)


def test_the_radius_follows_how_honest_clients_train_in_the_round():
    where = context()
    slow = replace(where, training=replace(where.training, learning_rate=0.001))
    early, late = (radius_of(Adaptive(), place) for place in (where, slow))
    assert late == pytest.approx(1.5 * honest_length(slow), rel=1e-4)
    assert late < 0.1 * early


@pytest.mark.parametrize("reach", [0.25, 1.0])
def test_what_is_sent_is_within_the_ball(reach):
    """A greedy attacker would go further, so it ends on the border."""
    attack = Adaptive(epochs=3, learning_rate=0.3, weight=0.0, reach=reach)
    radius = radius_of(attack, context())
    sent = float(update_of(attack, LOOT, on=no_dropout()).norm())
    assert sent <= radius * (1 + 1e-5)
    assert sent > 0.9 * radius


def test_who_dares_more_takes_more_of_the_poison_in():
    _, released = losses_on(torch.zeros_like(FEDERATION.start), GUESS)
    left = [
        losses_on(update_of(Adaptive(**OWN, weight=5.0, tolerance=dared, reach=20.0), LOOT), GUESS)[
            1
        ]
        for dared in (0.0, 1.0)
    ]
    assert left[1] < left[0] - 0.2 * released


def test_it_looks_more_honest_than_one_who_does_not_care():
    _, released = losses_on(torch.zeros_like(FEDERATION.start), GUESS)
    _, blunt = losses_on(update_of(BlackBox(**OWN), LOOT), GUESS)
    _, careful = losses_on(update_of(Adaptive(**OWN, weight=5.0), LOOT), GUESS)
    assert blunt < released
    assert careful > blunt + 0.5 * (released - blunt)


def test_it_needs_a_guess():
    with pytest.raises(SettingsError, match="needs a guess"):
        update_of(Adaptive(**OWN))


def test_a_third_of_the_poison_is_kept_as_the_guess():
    held = Adaptive().holdings(FEDERATION.attacker_data, 20)
    clean, poison = held.guess
    assert (len(held.poison), len(poison)) == (14, 6)
    assert clean is held.clean is FEDERATION.attacker_data.clean
    together = torch.cat([held.poison.inputs, poison.inputs])
    assert torch.equal(together, FEDERATION.attacker_data.poison.inputs)


def mean_loss(worker, examples):
    """The mean cross-entropy, an example at a time, in floats."""
    total = 0.0
    for inputs, label in zip(examples.inputs, examples.labels.tolist(), strict=True):
        logits = worker.module(inputs[None])[0].tolist()
        total += math.log(sum(math.exp(value) for value in logits)) - logits[label]
    return total / len(examples)


def faults(worker, before, tolerance):
    """By how much the model is worse on clean data, and how much of the backdoor it learned."""
    clean, poison = (mean_loss(worker, part) for part in GUESS)
    worse = max(clean - before[0], 0) / (before[0] + 0.1)
    return worse, max((1 - tolerance) * before[1] - poison, 0) / (before[1] + 0.1)


@pytest.mark.parametrize("tolerance", [0.0, 0.2, 1.0])
@pytest.mark.parametrize(
    ("step", "is_worse", "has_learned"),
    [(-1.0, True, False), (0.0, False, False), (0.5, False, True)],
)
def test_the_loss_is_the_classes_and_the_price_of_both_faults(
    step, is_worse, has_learned, tolerance
):
    """At the global model, on the way to one with the backdoor, and on the way back from it."""
    weight, worker = 7.0, no_dropout()
    worker.load(FEDERATION.start)
    loss = Adaptive(weight=weight, tolerance=tolerance).loss(worker, LOOT, context())
    before = [mean_loss(worker, part) for part in GUESS]
    worker.load(FEDERATION.start + step * update_of(Adaptive(**OWN, weight=0.0, reach=20.0), LOOT))
    worse, learned = faults(worker, before, tolerance)
    assert (worse > 0, learned > 0) == (is_worse, has_learned and tolerance < 1)
    expected = mean_loss(worker, BATCH) + weight * (worse + learned)
    found = loss(worker.module, BATCH.inputs, BATCH.labels).item()
    assert found == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize(("length", "left"), [(3.0, 3.0), (50.0, LONGEST)])
def test_a_long_gradient_is_cut_and_keeps_its_direction(length, left):
    worker = no_dropout()
    drawn = torch.randn(FEDERATION.layout.dim, generator=torch.Generator().manual_seed(0))
    sizes = [tensor.numel() for tensor in worker.tensors]
    for tensor, part in zip(worker.tensors, drawn.split(sizes), strict=True):
        tensor.grad = (length / drawn.norm() * part).view_as(tensor)
    Adaptive().before_step(worker, context())()
    cut = torch.cat([tensor.grad.flatten() for tensor in worker.tensors])
    assert torch.allclose(cut, left / drawn.norm() * drawn, atol=1e-5)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tolerance": -0.1}, "tolerance must be >= 0"),
        ({"tolerance": 1.1}, "tolerance must be <= 1"),
        ({"reach": 0.0}, "reach must be > 0"),
        ({"weight": -1.0}, "weight must be >= 0"),
        ({"project_every": 0}, "project_every must be >= 1"),
        ({"epochs": 0}, "epochs must be >= 1"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(SettingsError, match=message):
        Adaptive(**settings)
