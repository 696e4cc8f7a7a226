"""PoisonedFL over many rounds, against lists of numbers."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.attacks.situations import context, trainer

from datadefense.attacks.poisoned_fl import PoisonedFl, chance, magnitudes, signs
from datadefense.core.settings import SettingsError


def walk(models, attack, seed=0):
    """What is sent in each round as the global model goes through these."""
    states, sent = [attack.init(models[0])], []
    for place, model in enumerate(models):
        where = replace(
            context(),
            index=place + 1,
            start=model,
            previous=models[place - 1] if place else None,
            state=states[-1],
            seed=seed,
        )
        sent.append(attack.update(None, None, where))
        rows = torch.stack([sent[-1], sent[-1]])
        states.append(attack.remember(states[-1], rows, where))
    return sent, states


def slow_walk(models, signs, factor, period):
    """The same with plain numbers."""
    last, since, anchor, sent, factors = None, 0, None, [], []
    for place, model in enumerate(models):
        index = place + 1
        if since and index - since >= period:
            with_us = sum((m - a) * k > 0 for m, a, k in zip(model, anchor, signs, strict=True))
            count = len(model)
            little = with_us <= count / 2 + 2.3263478740408408 * math.sqrt(count) / 2
            if little and 0.7 * factor >= 0.5:
                factor *= 0.7
        if place == 0:
            update = [0.0 for _ in model]
        else:
            delta = [m - p for m, p in zip(model, models[place - 1], strict=True)]
            length = math.sqrt(sum(d * d for d in delta))
            own = math.sqrt(sum(x * x for x in last))
            share = length / own if own else 0.0
            v = [abs(d - share * x) for d, x in zip(delta, last, strict=True)]
            whole = math.sqrt(sum(x * x for x in v))
            update = [
                factor * length * k * x / whole if whole else 0.0
                for k, x in zip(signs, v, strict=True)
            ]
        sent.append(update)
        factors.append(factor)
        if not since or index - since >= period:
            since, anchor = index, model
        last = update
    return sent, factors


models_of = st.integers(1, 5).flatmap(
    lambda dim: st.lists(
        st.lists(st.integers(-8, 8), min_size=dim, max_size=dim), min_size=1, max_size=9
    )
)


@given(models_of, st.integers(1, 4), st.sampled_from([8.0, 0.6]))
def test_it_is_what_plain_numbers_say(models, period, factor):
    tensors = [torch.tensor(model, dtype=torch.float64) for model in models]
    attack = PoisonedFl(period=period, factor=factor)
    sent, states = walk(tensors, attack)
    ways = signs(replace(context(), start=tensors[0])).tolist()
    expected, factors = slow_walk(models, ways, factor, period)
    for row, wanted in zip(sent, expected, strict=True):
        scale = 1e-5 * max(1.0, *(abs(x) for x in wanted))
        assert row.tolist() == pytest.approx(wanted, rel=1e-5, abs=scale)
    assert [state.factor for state in states[1:]] == pytest.approx(factors)


def test_all_rounds_and_attackers_push_the_same_way():
    draw = torch.Generator().manual_seed(0)
    models = [torch.randn(300, generator=draw) for _ in range(4)]
    sent, _ = walk(models, PoisonedFl())
    ways = signs(replace(context(), start=models[0]))
    for update in sent[1:]:
        assert bool((update * ways >= 0).all())
    assert not torch.equal(ways, signs(replace(context(), start=models[0], seed=1)))


def test_it_sends_so_many_times_the_last_change():
    models = [torch.zeros(400), torch.ones(400), 3 * torch.ones(400) + torch.arange(400) / 400]
    sent, _ = walk(models, PoisonedFl(factor=5.0))
    assert float(sent[1].norm()) == pytest.approx(5 * 20, rel=1e-5)
    assert float(sent[2].norm()) == pytest.approx(
        5 * float((models[2] - models[1]).norm()), rel=1e-5
    )


def test_who_gets_through_stays_as_loud():
    """The model goes the attackers' way, or the other way, in every coordinate."""
    ways = signs(replace(context(), start=torch.zeros(400)))
    for sign, left in ((1.0, 8.0), (-1.0, 8.0 * 0.7**2)):
        models = [sign * place * ways for place in range(7)]
        _, states = walk(models, PoisonedFl(period=3))
        assert states[-1].factor == pytest.approx(left)


@pytest.mark.parametrize("value", [0.0, 3e38])
def test_models_that_do_not_move_or_move_far(value):
    models = [torch.zeros(10), torch.full((10,), value), torch.zeros(10), torch.zeros(10)]
    sent, _ = walk(models, PoisonedFl(factor=1e10))
    assert all(bool(update.isfinite().all()) for update in sent)


def test_no_more_than_chance():
    assert chance(10_000, 0.99) == pytest.approx(5116.3, abs=0.1)
    assert chance(10_000, 0.5) == 5000
    assert not magnitudes(torch.zeros(4), torch.ones(4)).any()


def test_a_whole_attacker_needs_no_data():
    attack = PoisonedFl()
    where = context(previous=torch.zeros_like(context().start), state=attack.init(context().start))
    assert bool(attack.update(trainer(), None, where).isfinite().all())


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"factor": 0.0}, "factor must be > 0"),
        ({"shrink": 1.5}, "shrink must be <= 1"),
        ({"least": -1.0}, "least must be >= 0"),
        ({"period": 0}, "period must be >= 1"),
        ({"confidence": 1.0}, "confidence must be < 1"),
    ],
)
def test_bad_settings(settings, message):
    with pytest.raises(SettingsError, match=message):
        PoisonedFl(**settings)
