"""Sign flip: the opposite of an honest training."""

import math
from dataclasses import replace

import pytest
import torch
from tests.attacks.situations import FEDERATION, context, trainer, update_of

from datadefense.attacks.base import seed_module
from datadefense.attacks.sign_flip import SignFlip
from datadefense.core.settings import SettingsError

DATA = FEDERATION.attacker_data


@pytest.mark.parametrize("factor", [1.0, 4.0])
def test_it_sends_the_opposite_of_an_honest_training(factor):
    where, worker = context(), trainer()
    seed_module(where)
    worker.load(where.start)
    worker.train(where.training, DATA.clean, where.generator("order"))
    honest = worker.write_update(where.start, torch.empty_like(where.start))
    assert torch.equal(update_of(SignFlip(factor=factor)), -factor * honest)


def test_poison_is_neither_used_nor_claimed():
    assert SignFlip().num_examples(DATA) == len(DATA.clean)
    none = replace(DATA, clean=DATA.clean.take(torch.arange(0)))
    assert SignFlip().num_examples(none) == 1


@pytest.mark.parametrize("value", [math.nan, math.inf, 3e38])
def test_what_training_gave_is_made_finite(value):
    given = torch.full_like(FEDERATION.start, value)
    sent = SignFlip(factor=4.0).finish(given, trainer(), DATA, context())
    assert bool(sent.isfinite().all())


def test_bad_settings():
    with pytest.raises(SettingsError, match="factor must be > 0, got -1"):
        SignFlip(factor=-1.0)
