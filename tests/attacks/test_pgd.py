import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.simulation.tiny import tiny_federation

from datadefense.attacks.base import AttackContext
from datadefense.attacks.pgd import Pgd, project
from datadefense.core.local_training import Sgd, Trainer
from datadefense.core.settings import SettingsError


def context(federation, index=1):
    return AttackContext(
        index=index,
        start=federation.start,
        previous=None,
        num_examples=400,
        attacker=(0, 1),
        training=Sgd(),
        augment=None,
        seed=0,
        first=federation.start,
    )


def update_of(attack, index=1):
    federation = tiny_federation()
    trainer = Trainer(copy.deepcopy(federation.module), federation.layout)
    return attack.update(trainer, federation.attacker_data, context(federation, index))


@given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=8), st.floats(0.01, 50))
def test_projection(values, radius):
    projected = project(torch.tensor(values), radius).tolist()
    assert projected == pytest.approx(oracles.clipped(values, radius), rel=1e-5, abs=1e-5)


def test_the_update_stays_in_the_ball():
    free = update_of(Pgd(epochs=5, batch_size=8, radius=None))
    assert free.norm() > 0.3
    for radius in (0.3, 0.1, 0.0):
        bound = update_of(Pgd(epochs=5, batch_size=8, radius=radius))
        assert float(bound.norm()) <= radius * (1 + 1e-5)
    wide = update_of(Pgd(epochs=5, batch_size=8, radius=1e9))
    assert torch.allclose(wide, free, atol=1e-6)


def test_the_ball_shrinks_from_round_to_round():
    attack = Pgd(epochs=5, batch_size=8, radius=0.2, radius_decay=0.5)
    assert float(update_of(attack, index=3).norm()) == pytest.approx(0.05, rel=1e-4)


def test_replacement_scales_by_examples():
    plain = update_of(Pgd(batch_size=8, radius=0.2))
    scaled = update_of(Pgd(batch_size=8, radius=0.2, replacement=True))
    assert torch.allclose(scaled, plain * 400 / 40)


def test_projection_happens_every_so_many_steps(monkeypatch):
    loads = []
    original = Trainer.load
    monkeypatch.setattr(Trainer, "load", lambda self, p: (loads.append(1), original(self, p)))
    update_of(Pgd(epochs=2, batch_size=4, radius=0.1, project_every=4))
    steps = 10
    per_epoch = {step for step in range(steps) if step % 4 == 0 or step == steps - 1}
    assert len(loads) == 1 + 2 * len(per_epoch)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"radius": -1.0}, "radius must be >= 0, got -1"),
        ({"radius_decay": 0.0}, "radius_decay must be > 0, got 0"),
        ({"project_every": 0}, "project_every must be >= 1, got 0"),
        ({"epochs": 0}, "epochs must be >= 1, got 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        Pgd(**settings)
