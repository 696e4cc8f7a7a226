"""Black box: plain training on clean and poisoned data, with passes and a step size of its own."""

import pytest
import torch
from tests.attacks.situations import FEDERATION, context, trainer, update_of

from datadefense.attacks.base import seed_module
from datadefense.attacks.black_box import BlackBox
from datadefense.core.local_training import Sgd
from datadefense.core.settings import SettingsError


def trained(training, where):
    """What plain training on all that the attacker holds gives."""
    worker, data = trainer(), FEDERATION.attacker_data
    seed_module(where)
    worker.load(where.start)
    worker.train(training, data.clean.join(data.poison), where.generator("order"))
    return worker.write_update(where.start, torch.empty_like(where.start))


def test_it_sends_what_its_training_gives():
    where = context(training=Sgd(1, 8, 0.05, momentum=0.5, weight_decay=0.01))
    sent = update_of(BlackBox(epochs=3, learning_rate=0.1), where=where)
    assert torch.equal(sent, trained(Sgd(3, 8, 0.1, momentum=0.5, weight_decay=0.01), where))


def test_its_step_size_decays_with_that_of_honest_clients():
    where = context(rate_factor=0.25)
    sent = update_of(BlackBox(epochs=3, learning_rate=0.1), where=where)
    assert torch.equal(sent, trained(Sgd(3, 8, 0.025), where))


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"epochs": 0}, "epochs must be >= 1, got 0"),
        ({"learning_rate": 0.0}, "learning_rate must be > 0, got 0"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        BlackBox(**settings)
