"""Backdoor-critical layers, against sets of layers written out."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.situations import FEDERATION, OWN, context, trainer, update_of

from datadefense.attacks.black_box import BlackBox
from datadefense.attacks.lp import Lp, critical, honest_update, layers
from datadefense.core.settings import SettingsError

DATA = FEDERATION.attacker_data


def test_a_layer_is_a_module_with_all_its_tensors():
    masks = layers(FEDERATION.layout)
    assert [int(mask.sum()) for mask in masks] == [5 * 6 + 6, 6 * 3 + 3]
    assert bool((torch.stack(masks).sum(0) == 1).all())


def slow_critical(count, success, tau):
    """The layers of the poisoned model that are put into the honest one, as a set."""
    everything = frozenset(range(count))
    drops = [success(everything) - success(everything - {layer}) for layer in range(count)]
    order = sorted(range(count), key=lambda layer: (-drops[layer], layer))
    chosen = frozenset()
    while success(chosen) < tau * success(everything) and len(chosen) < count:
        chosen |= {order[len(chosen)]}
    return chosen


@given(
    st.lists(st.integers(-2, 6), min_size=1, max_size=6),
    st.sampled_from([0.0, 0.5, 0.8, 1.0]),
    st.integers(0, 3),
)
def test_layers_are_added_in_order_until_the_backdoor_is_there(worth, tau, threshold):
    """Success depends on which layers are poisoned, in a way that is not additive."""
    count = len(worth)

    def success(poisoned):
        total = sum(worth[layer] for layer in poisoned)
        return max(0, total - threshold) / 40

    masks = [torch.arange(2 * count) // 2 == layer for layer in range(count)]
    honest, poison = torch.zeros(2 * count), torch.ones(2 * count)

    def seen(candidate):
        return success({layer for layer in range(count) if bool(candidate[2 * layer] == 1)})

    chosen = critical(poison, honest, masks, seen, tau)
    expected = slow_critical(count, success, tau)
    assert chosen.tolist() == [place // 2 in expected for place in range(2 * count)]


def test_what_is_sent_is_poisoned_in_some_layers_and_honest_in_the_others():
    where = context()
    poisoned = update_of(BlackBox(**OWN))
    honest = honest_update(trainer(), DATA, where)
    for tau, factor in ((0.0, 1.0), (0.8, 1.0), (1.0, 3.0)):
        sent = update_of(Lp(**OWN, tau=tau, factor=factor))
        for mask in layers(FEDERATION.layout):
            assert torch.equal(sent[mask], factor * poisoned[mask]) or torch.equal(
                sent[mask], honest[mask]
            )
    assert torch.equal(update_of(Lp(**OWN, tau=0.0)), honest)


def test_the_sent_model_has_the_wanted_share_of_success():
    longer = {"epochs": 30, "learning_rate": 0.05}
    rates = []
    for update in (update_of(BlackBox(**longer)), update_of(Lp(**longer))):
        worker = trainer()
        worker.load(FEDERATION.start + update)
        rates.append(worker.count_correct(DATA.poison) / len(DATA.poison))
    assert rates[0] > 0.8
    assert rates[1] >= 0.8 * rates[0]


@pytest.mark.parametrize("value", [math.nan, math.inf])
def test_a_training_that_came_to_nothing(value):
    broken = torch.full_like(FEDERATION.start, value)
    sent = Lp(tau=1.0).finish(broken, trainer(), DATA, context())
    assert bool(sent.isfinite().all())


def test_an_attacker_without_poison_or_clean_examples():
    none = torch.arange(0)
    for data in (
        replace(DATA, poison=DATA.poison.take(none)),
        replace(DATA, clean=DATA.clean.take(none)),
    ):
        assert bool(update_of(Lp(**OWN), data).isfinite().all())


@pytest.mark.parametrize(
    ("settings", "message"),
    [({"tau": 1.5}, "tau must be <= 1"), ({"factor": 0.0}, "factor must be > 0")],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        Lp(**settings)
