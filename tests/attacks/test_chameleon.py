"""Chameleon: the contrast, slowly; what each stage trains; the ball."""

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.situations import FEDERATION, context, no_dropout, trainer, update_of
from tests.strategies import matrices
from torch import nn

from datadefense.attacks.chameleon import Chameleon, contrast, last_dense
from datadefense.core.settings import SettingsError

DATA = FEDERATION.attacker_data


def slow_contrast(rows, labels, temperature, weights):
    """Anchor by anchor, positive by positive."""
    units = []
    for row in rows:
        length = max(math.sqrt(sum(x * x for x in row)), 1e-12)
        units.append([x / length for x in row])

    def likeness(i, j):
        return sum(x * y for x, y in zip(units[i], units[j], strict=True)) / temperature

    count, total = len(rows), 0.0
    for i in range(count):
        others = [j for j in range(count) if j != i]
        positives = [j for j in others if labels[j] == labels[i]]
        if not positives:
            continue
        whole = sum(math.exp(likeness(i, k)) for k in others)
        logs = [likeness(i, p) - math.log(whole) for p in positives]
        total -= weights[i] * sum(logs) / len(positives)
    return total / count


@given(matrices(max_clients=7), st.data())
def test_the_contrast(features, data):
    count = len(features)
    labels = data.draw(st.lists(st.integers(0, 2), min_size=count, max_size=count))
    weights = data.draw(st.lists(st.sampled_from([1.0, 4.0]), min_size=count, max_size=count))
    point = features.clone().requires_grad_()
    value = contrast(point, torch.tensor(labels), 0.5, torch.tensor(weights))
    expected = slow_contrast(features.tolist(), labels, 0.5, weights)
    assert value.item() == pytest.approx(expected, rel=1e-4, abs=1e-5)
    value.backward()
    assert bool(point.grad.isfinite().all())


def test_the_loss_looks_at_what_the_head_is_given():
    worker, examples = no_dropout(), DATA.mixed()
    attack = Chameleon(temperature=0.3)
    loss = attack.loss(worker, DATA, context())
    value = loss(worker.module, examples.inputs, examples.labels)
    hidden = worker.module[:-1](examples.inputs)
    weights = [4.0 if int(label) == 0 else 1.0 for label in examples.labels]
    expected = slow_contrast(hidden.tolist(), examples.labels.tolist(), 0.3, weights)
    assert value.item() == pytest.approx(expected, rel=1e-4)
    assert not worker.module[-1]._forward_pre_hooks


def parts_moved(update):
    return [bool(part.any()) for part in torch.split(update, [5 * 6 + 6, 6 * 3 + 3])]


def test_the_first_stage_trains_the_encoder_and_the_second_the_head(monkeypatch):
    attack = Chameleon(epochs=2, head_epochs=1, radius=100.0)
    seen = []
    finish = Chameleon.finish

    def watched(self, update, *rest):
        seen.append(update.clone())
        return finish(self, update, *rest)

    monkeypatch.setattr(Chameleon, "finish", watched)
    whole = update_of(attack)
    assert parts_moved(seen[0]) == [True, False]
    assert parts_moved(whole) == [True, True]
    assert torch.equal(whole[:36], seen[0][:36])


def test_it_stays_within_the_ball():
    for radius in (0.05, 0.3):
        sent = update_of(Chameleon(epochs=3, learning_rate=0.5, radius=radius))
        assert float(sent.norm()) <= radius * (1 + 1e-4)


def test_a_model_without_a_dense_layer_has_no_head():
    with pytest.raises(SettingsError, match="chameleon needs a model with an nn.Linear"):
        last_dense(nn.Conv2d(1, 1, 1))


def test_a_training_that_diverges_is_made_finite():
    sent = update_of(Chameleon(epochs=3, learning_rate=1e30, radius=1e30))
    assert bool(sent.isfinite().all())


def test_it_plants_the_backdoor():
    sent = update_of(Chameleon(epochs=30, head_epochs=30, learning_rate=0.05, radius=20.0))
    worker = trainer()
    worker.load(FEDERATION.start + sent)
    assert worker.count_correct(DATA.poison) > 0.9 * len(DATA.poison)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"head_epochs": 0}, "head_epochs must be >= 1"),
        ({"temperature": 0.0}, "temperature must be > 0"),
        ({"facilitation": 0.0}, "facilitation must be > 0"),
        ({"radius": 0.0}, "radius must be > 0"),
        ({"project_every": 0}, "project_every must be >= 1"),
        ({"epochs": 0}, "epochs must be >= 1"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        Chameleon(**settings)
