"""The patient attacker, against a slow twin of its loss."""

import math
from dataclasses import replace

import pytest
import torch
from tests.attacks.situations import FEDERATION, OWN, context, no_dropout, trainer, update_of
from tests.simulation.tiny import clouds, poisoned

from datadefense.attacks.adaptive import Adaptive
from datadefense.attacks.drip import Drip
from datadefense.core.settings import SettingsError

GUESS = (clouds(30, 21), poisoned(20, 22))
LOOT = replace(FEDERATION.attacker_data, guess=GUESS)
BATCH = clouds(9, 23)
BACKDOOR = update_of(Adaptive(**OWN, weight=0.0, reach=20.0), LOOT)


def probability(worker):
    """The mean probability of the guessed poison's labels, an example at a time, in floats."""
    total = 0.0
    for inputs, label in zip(GUESS[1].inputs, GUESS[1].labels.tolist(), strict=True):
        powers = [math.exp(value) for value in worker.module(inputs[None])[0].tolist()]
        total += powers[label] / sum(powers)
    return total / len(GUESS[1])


@pytest.mark.parametrize("slack", [0.0, 0.03, 0.2])
@pytest.mark.parametrize("first", [-0.5, 0.0])
@pytest.mark.parametrize("step", [-0.8, 0.1, 0.5, 1.0])
def test_the_third_price_is_what_is_known_beyond_the_first_model_and_the_slack(step, first, slack):
    """The first model may have known less than the one that the round starts from."""
    worker, where = no_dropout(), context(first=FEDERATION.start + first * BACKDOOR)
    worker.load(where.first)
    limit = probability(worker) + slack
    losses = []
    for attack in (
        Adaptive(weight=7.0, tolerance=0.2),
        Drip(weight=7.0, tolerance=0.2, slack=slack),
    ):
        worker.load(where.start)
        loss = attack.loss(worker, LOOT, where)
        worker.load(where.start + step * BACKDOOR)
        losses.append(loss(worker.module, BATCH.inputs, BATCH.labels).item())
    beyond = max(probability(worker) - limit, 0)
    assert losses[1] - losses[0] == pytest.approx(7 * beyond / (limit + 0.1), rel=1e-4, abs=1e-5)
    assert (beyond > 0) == (losses[1] > losses[0])


def test_some_of_these_models_are_beyond_and_some_are_not():
    """Else the test above would compare nothing with nothing."""
    worker, known = no_dropout(), []
    for step in (-0.5, 0.0, 1.0):
        worker.load(FEDERATION.start + step * BACKDOOR)
        known.append(probability(worker))
    assert known[0] < known[1] < known[1] + 0.2 < known[2]


def test_the_round_begins_at_the_global_model_again():
    worker, where = trainer(), context(first=FEDERATION.start + BACKDOOR)
    worker.load(where.start)
    Drip(slack=0.03).loss(worker, LOOT, where)
    left = worker.write_update(where.start, torch.empty_like(where.start))
    assert not bool(left.any())


def test_with_slack_for_everything_it_is_the_attacker_who_only_knows_the_round():
    """To the bit in what it sends: the third price is always 0."""
    plain, patient = (
        update_of(attack, LOOT, on=no_dropout())
        for attack in (Adaptive(**OWN), Drip(**OWN, slack=1.0))
    )
    assert torch.equal(plain, patient)


def test_it_knows_less_than_one_who_only_knows_the_round():
    """Both dare all in a round; only the patient one minds what the first model knew."""
    worker, known = no_dropout(), []
    for attack in (
        Adaptive(**OWN, tolerance=1.0, reach=20.0),
        Drip(**OWN, tolerance=1.0, reach=20.0, slack=0.03),
    ):
        worker.load(FEDERATION.start + update_of(attack, LOOT, on=no_dropout()))
        worker.module.eval()
        known.append(probability(worker))
    worker.load(FEDERATION.start)
    first = probability(worker)
    assert first < known[1] < first + 0.1 < known[0]


@pytest.mark.parametrize("slack", [0.03, 1.0])
def test_it_needs_a_guess(slack):
    with pytest.raises(SettingsError, match="needs a guess of the defense set"):
        Drip(slack=slack).loss(trainer(), FEDERATION.attacker_data, context())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"slack": -0.1}, "slack must be >= 0"),
        ({"slack": 1.1}, "slack must be <= 1"),
        ({"tolerance": 1.1}, "tolerance must be <= 1"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(SettingsError, match=message):
        Drip(**settings)
