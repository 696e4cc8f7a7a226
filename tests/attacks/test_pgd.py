"""Training within a ball: projection, its radius and when it happens; and the scaled update."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.simulation.tiny import tiny_federation

from datadefense.attacks.base import AttackContext
from datadefense.attacks.black_box import BlackBox
from datadefense.attacks.pgd import Pgd, PgdReplacement, project
from datadefense.core.local_training import Sgd, Trainer
from datadefense.core.settings import SettingsError


def context(federation, index=1, batch_size=8):
    return AttackContext(
        index=index,
        start=federation.start,
        previous=None,
        num_examples=400,
        attacker=(0, 1),
        training=Sgd(batch_size=batch_size, weight_decay=1e-4),
        augment=None,
        seed=0,
        first=federation.start,
        clients=5,
    )


def update_of(attack, index=1, batch_size=8):
    federation = tiny_federation()
    trainer = Trainer(copy.deepcopy(federation.module), federation.layout)
    where = context(federation, index, batch_size)
    return attack.update(trainer, federation.attacker_data, where)


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=8), st.floats(0.01, 50))
def test_projection(values, radius):
    projected = project(torch.tensor(values), radius).tolist()
    assert projected == pytest.approx(oracles.clipped(values, radius), rel=1e-5, abs=1e-5)


def test_the_update_stays_in_the_ball():
    free = update_of(BlackBox(epochs=5))
    assert free.norm() > 0.3
    for radius in (0.3, 0.1, 0.0):
        bound = update_of(Pgd(epochs=5, radius=radius))
        assert float(bound.norm()) <= radius * (1 + 1e-5)
    wide = update_of(Pgd(epochs=5, radius=1e9))
    assert torch.allclose(wide, free, atol=1e-6)


def test_the_ball_shrinks_from_round_to_round():
    attack = Pgd(epochs=5, radius=0.2, radius_decay=0.5)
    assert float(update_of(attack, index=3).norm()) == pytest.approx(0.05, rel=1e-4)
    scaled = PgdReplacement(epochs=5, replacement_radius=0.2, radius_decay=0.5)
    assert float(update_of(scaled, index=3).norm()) == pytest.approx(0.05 * 400 / 40, rel=1e-4)


def test_replacement_scales_by_examples():
    plain = update_of(Pgd(epochs=2, radius=0.2))
    scaled = update_of(PgdReplacement(epochs=2, replacement_radius=0.2))
    assert torch.allclose(scaled, plain * 400 / 40)


@pytest.mark.parametrize("kind", [Pgd, PgdReplacement])
def test_projection_happens_every_so_many_steps(kind, monkeypatch):
    loads = []
    original = Trainer.load
    monkeypatch.setattr(Trainer, "load", lambda self, p: (loads.append(1), original(self, p)))
    update_of(kind(epochs=2, project_every=4), batch_size=4)
    steps = 10
    per_epoch = {step for step in range(steps) if step % 4 == 0 or step == steps - 1}
    assert len(loads) == 1 + 2 * len(per_epoch)


@pytest.mark.parametrize(
    ("kind", "name"), [(Pgd, "radius"), (PgdReplacement, "replacement_radius")]
)
def test_a_radius_that_cannot_be_is_called_by_the_settings_name(kind, name):
    with pytest.raises(SettingsError, match=f"^{name} must be >= 0, got -1"):
        kind(**{name: -1.0})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"radius_decay": 0.0}, "radius_decay must be > 0, got 0"),
        ({"project_every": 0}, "project_every must be >= 1, got 0"),
        ({"epochs": 0}, "epochs must be >= 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0, got 0"),
    ],
)
@pytest.mark.parametrize("kind", [Pgd, PgdReplacement])
def test_bad_settings(kind, settings, message):
    with pytest.raises(SettingsError, match=message):
        kind(**settings)
