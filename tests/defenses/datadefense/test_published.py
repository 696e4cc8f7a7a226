from dataclasses import replace
from itertools import starmap

import pytest
import torch
from tests import oracles
from tests.defenses.datadefense import toys
from tests.records import suspicions

from datadefense import Examples, load_state, save_state
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.defenses import DataDefenseAppendix, DataDefensePaper, DataDefenseReleased
from datadefense.defenses.datadefense.detector import Psi, draw_psi

PRESETS = (DataDefensePaper, DataDefenseAppendix, DataDefenseReleased)
EACH = pytest.mark.parametrize("make", PRESETS, ids=lambda make: make.name)


def small_server(seed=0):
    """Sixteen examples, four of them poisoned, five known clean; the model computes in float64."""
    owned = toys.defense_set(12, 4, 5, seed)
    double = Examples(owned.examples.inputs.double(), owned.examples.labels)
    return toys.server(replace(owned, examples=double), seed)


def noisy_round(seed=0, index=1, clients=5):
    start = toys.released().double()
    updates = torch.randn(clients, len(start), generator=generator(seed, "noise")).double()
    return toys.round_of(0.3 * updates, index, start)


def label_losses(predict, params, examples):
    """-log p and -log(1 - p), straight from the softmax; differentiable in the parameters."""
    p = predict(params, examples.inputs).softmax(1)[range(len(examples)), examples.labels]
    return -p.log(), -(1 - p).log()


def slow_psi_step(psi, owned, margins, *, rate, lam, scale=1.0):
    """One step of descent on Eq. 10, or without margins on Eq. 11, example by example."""
    weights = [weight.double().requires_grad_() for weight in psi]
    W1, W2, W3, W4 = weights
    scores, prediction = [], 0.0
    for h_1, y, known in zip(
        owned.features.double(), owned.examples.labels, owned.known_clean, strict=True
    ):
        y_hat = (W2 @ (W1 @ h_1).relu()).softmax(0)
        pair = torch.cat([y_hat, torch.eye(len(y_hat)).double()[y]])
        scores.append((W4 @ (W3 @ pair).relu())[0])
        if known:
            prediction = prediction - y_hat[y].log()
    low, high = min(scores), max(scores)
    gamma = [(score - low) / (high - low) for score in scores]
    if margins is None:
        first = oracles.consistency(gamma, owned.known_clean.tolist())
    else:
        first = scale * sum(g * m for g, m in zip(gamma, margins.tolist(), strict=True))
    slopes = torch.autograd.grad(first + lam * prediction, weights, materialize_grads=True)
    return [w.detach() - rate * s for w, s in zip(weights, slopes, strict=True)]


def slow_round(defense, state, round, server):
    """The loop's body from the paper: weights, model, theta, psi."""
    owned, start = server.defense_set, round.global_params
    lists = [weight.tolist() for weight in state.psi]
    labels = owned.examples.labels.tolist()
    gamma = oracles.min_max(oracles.detector_scores(lists, owned.features.tolist(), labels))
    marked = oracles.most_suspicious(gamma, defense.beta, [False] * len(owned))
    clean = [i for i in range(len(owned)) if i not in marked]
    rows = []
    for j, update in enumerate(round.updates):
        loss = label_losses(server.predict, start + update, owned.examples)[0].tolist()
        rows.append(
            [
                oracles.mean([loss[i] for i in clean]),
                oracles.mean([loss[i] for i in marked]),
                oracles.norm(update.tolist()),
                int(round.num_examples[j]) / int(round.num_examples.sum()),
            ][: defense.features]
        )
    theta = state.theta.clone().requires_grad_()
    r = torch.tensor(rows, dtype=torch.float64) @ theta
    kept = r if defense.form == "linear" else r.relu()
    C = kept / kept.sum()
    phi = start + sum(weight * update for weight, update in zip(C, round.updates, strict=True))
    l_c, l_p = label_losses(server.predict, phi, owned.examples)
    parts = (l_c[clean], l_p[marked])
    loss = sum(part.sum() if defense.theta_loss == "sum" else part.mean() for part in parts)
    (slope,) = torch.autograd.grad(loss, theta)
    at = start if defense.psi_update == "before" else phi.detach()
    l_c, l_p = label_losses(server.predict, at, owned.examples)
    psi = slow_psi_step(
        state.psi,
        owned,
        l_p - l_c,
        rate=defense.psi_rate,
        lam=defense.lam,
        scale=defense.psi_scale,
    )
    return C.tolist(), phi.tolist(), (state.theta - defense.theta_rate * slope).tolist(), psi


def moved_alike(start, one, two, tolerance=1e-3):
    """The two steps agree, relative to the longer of them."""
    for before, left, right in zip(start, one, two, strict=True):
        gap = float((left.double() - right).norm())
        length = float((right - before.double()).norm())
        assert gap <= tolerance * length + 1e-6, (gap, length)


@EACH
@pytest.mark.parametrize("seed", range(4))
def test_a_round_against_autograd_through_the_average(make, seed):
    defense, server, round = make(), small_server(seed), noisy_round(seed)
    theta = torch.tensor([-0.3, 0.2, 0.5, 1.0][: defense.features], dtype=torch.float64)
    state = replace(defense.init(server, round.global_params), theta=theta)
    weights, params, stepped, psi = slow_round(defense, state, round, server)
    result = defense.aggregate(state, round, server)
    assert result.weights.tolist() == pytest.approx(weights, abs=1e-6)
    assert result.params.tolist() == pytest.approx(params, abs=1e-6)
    assert result.state.theta.tolist() == pytest.approx(stepped, rel=1e-5, abs=1e-6)
    assert list(result.theta.values()) == state.theta.tolist()
    assert list(result.theta) == list(result.evidence)
    moved_alike(state.psi, result.state.psi, psi)
    assert "dead" not in result.report


def test_the_order_of_the_updates_matters():
    """Psi learns from the old model in Algorithm 1, from the new one in Algorithm 2."""
    server, round = small_server(), noisy_round()
    state = DataDefensePaper().init(server, round.global_params)
    state = replace(state, theta=torch.ones(3, dtype=torch.float64))
    first = DataDefensePaper(lam=0.0).aggregate(state, round, server)
    after = DataDefenseAppendix().aggregate(state, round, server)
    assert torch.equal(first.params, after.params)
    assert torch.equal(first.state.theta, after.state.theta)
    assert not torch.equal(first.state.psi.W4, after.state.psi.W4)
    silent = replace(round, updates=torch.zeros_like(round.updates))
    first = DataDefensePaper(lam=0.0).aggregate(state, silent, server)
    after = DataDefenseAppendix().aggregate(state, silent, server)
    assert torch.equal(first.state.psi.W4, after.state.psi.W4)


@EACH
def test_the_consistent_start_against_autograd(make):
    defense, server = make(start_steps=2, start_rate=0.003), small_server()
    owned = server.defense_set
    psi = draw_psi(toys.WIDTH, toys.CLASSES, server.generator(defense.name, "psi"), 256)
    expected = psi
    for _ in range(2):
        expected = slow_psi_step(expected, owned, None, rate=0.003, lam=defense.start_lam)
    found = defense.init(server, toys.released().double()).psi
    moved_alike(psi, found, expected)
    assert defense.init(server, toys.released().double()).psi.W1.dtype == torch.float32


def test_how_theta_is_drawn():
    server = small_server()
    start = toys.released().double()
    normal = DataDefenseReleased(theta_start="normal", start_steps=0).init(server, start).theta
    xavier = DataDefenseReleased(start_steps=0).init(server, start).theta
    assert torch.allclose(xavier, normal * (2 / 5) ** 0.5)
    assert len(DataDefensePaper(start_steps=0).init(server, start).theta) == 3
    drawn = [
        DataDefensePaper(start_steps=0).init(small_server(seed), start).theta for seed in range(200)
    ]
    assert float(torch.stack(drawn).mean()) == pytest.approx(0, abs=0.15)
    assert float(torch.stack(drawn).std()) == pytest.approx(1, abs=0.1)


def test_presets_are_named_fields_and_nothing_else():
    common = {"start_steps": 100, "start_rate": 1e-5, "start_lam": 10.0, "psi_rate": 0.001}
    algorithm_1 = common | {"form": "relu", "features": 3, "theta_loss": "sum"}
    algorithm_1 |= {"theta_start": "normal", "psi_scale": 1.0, "lam": 10.0, "theta_rate": 0.01}
    algorithm_1 |= {"psi_update": "before", "hidden": 256}
    algorithm_2 = algorithm_1 | {"psi_update": "after", "lam": 0.0}
    code = algorithm_2 | {"form": "linear", "features": 4, "theta_loss": "mean"}
    code |= {"theta_start": "xavier", "psi_scale": 1 / 32, "theta_rate": 0.16}
    for make, fields in zip(PRESETS, (algorithm_1, algorithm_2, code), strict=True):
        assert {name: getattr(make(), name) for name in fields} == fields


@pytest.mark.parametrize("make", [DataDefensePaper, DataDefenseAppendix])
def test_a_dead_start_stays_dead_and_says_so(make):
    """All features are >= 0, so a theta < 0 gives nobody weight, and has no gradient."""
    defense, server, round = make(), small_server(), noisy_round()
    state = defense.init(server, round.global_params)
    state = replace(state, theta=torch.tensor([-1.0, -0.1, -0.5], dtype=torch.float64))
    for index in (1, 2):
        result = defense.aggregate(state, replace(round, index=index), server)
        assert torch.equal(result.params, round.global_params)
        assert result.weights.tolist() == [0] * 5
        assert torch.equal(result.state.theta, state.theta)
        assert result.report["dead"].startswith("every theta . s_j <= 0")
        state = result.state


def test_released_weights_may_be_negative():
    defense, server, round = DataDefenseReleased(), small_server(), noisy_round()
    state = defense.init(server, round.global_params)
    theta = torch.tensor([1.0, -0.9, 0.1, 0.0], dtype=torch.float64)
    for factor in (1.0, -1.0):
        result = defense.aggregate(replace(state, theta=factor * theta), round, server)
        assert (result.weights < 0).any()
        assert float(result.weights.sum()) == pytest.approx(1)
        expected = round.global_params + result.weights @ round.updates
        assert torch.allclose(result.params, expected)
        assert "dead" not in result.report


def test_released_weights_depend_on_the_claimed_numbers_of_examples():
    server, round = small_server(), noisy_round()
    boasting = replace(round, num_examples=round.num_examples.flip(0))
    for make, same in ((DataDefensePaper, True), (DataDefenseReleased, False)):
        state = make(start_steps=3).init(server, round.global_params)
        state = replace(state, theta=torch.ones_like(state.theta))
        one, two = (make().aggregate(state, given, server) for given in (round, boasting))
        assert torch.equal(one.weights, two.weights) == same
        assert ("share" in one.evidence) != same


@EACH
@pytest.mark.parametrize(("index", "tenths"), [(1, 0), (300, 0), (301, 1), (600, 1), (601, 2)])
def test_eta_falls_to_a_tenth_every_300_rounds(make, index, tenths):
    server, round = small_server(), noisy_round()
    state = make(start_steps=3).init(server, round.global_params)
    state = replace(state, theta=torch.ones_like(state.theta))
    first, later = (
        make(psi_rate=1.0).aggregate(state, replace(round, index=t), server).state.psi.W4
        for t in (1, index)
    )
    step = first - state.psi.W4
    assert float(step.norm()) > 0
    assert torch.allclose(later - state.psi.W4, step * 0.1**tenths, rtol=1e-3, atol=1e-6)


@EACH
def test_after_the_halt_theta_and_psi_stay(make):
    defense, server = make(halt_after=1, start_steps=3), small_server()
    state = defense.init(server, toys.released().double())
    state = replace(state, theta=torch.ones_like(state.theta))
    for index in (1, 2, 3):
        before = state
        state = defense.aggregate(before, noisy_round(index, index), server).state
        assert torch.equal(before.theta, state.theta) == (index > 1)
        assert torch.equal(before.psi.W4, state.psi.W4) == (index > 1)


@EACH
def test_it_goes_on_from_a_file_to_the_same_bits(make, tmp_path):
    defense, server = make(start_steps=3), small_server()
    start = defense.init(server, toys.released().double())
    state = defense.aggregate(start, noisy_round(1), server).state
    save_state(tmp_path / "state", state)
    restored = load_state(tmp_path / "state", like=start)
    straight, resumed = (
        defense.aggregate(one, noisy_round(2, 2), server) for one in (state, restored)
    )
    assert torch.equal(straight.params, resumed.params)
    assert torch.equal(straight.state.theta, resumed.state.theta)
    assert all(starmap(torch.equal, zip(straight.state.psi, resumed.state.psi, strict=True)))


def is_finite(result, clients):
    assert result.state.theta.isfinite().all()
    assert all(weight.isfinite().all() for weight in result.state.psi)
    assert result.weights.shape == (clients,)
    assert all(values.isfinite().all() for values in result.evidence.values())


def two_rounds(defense, server, start, clients=4, size=0.1):
    state = defense.init(server, start)
    for index in (1, 2):
        updates = size * torch.randn(clients, len(start), generator=generator(index)).to(start)
        result = defense.aggregate(state, toys.round_of(updates, index, start), server)
        is_finite(result, clients)
        state = result.state
    return result


@EACH
@pytest.mark.parametrize("beta", [0.0, 0.2, 1.0])
@pytest.mark.parametrize("count", [1, 2, 5])
def test_a_handful_of_examples_is_survived(make, beta, count):
    for known in {0, 1, count}:
        owned = toys.defense_set(count, 0, known)
        result = two_rounds(make(beta=beta, start_steps=3), toys.server(owned), toys.released(), 1)
        assert result.params.isfinite().all()


@EACH
@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_losses_that_are_not_finite_are_survived(make, value):
    server = toys.server(toys.defense_set(12, 4, 5))

    def broken(params, inputs):
        return toys.predict(params, inputs) * value

    two_rounds(make(start_steps=3), replace(server, predict=broken), toys.released())
    two_rounds(make(start_steps=3), server, toys.released(), size=1e30)


@EACH
def test_features_that_say_nothing_are_survived(make):
    owned = toys.defense_set(12, 0, 5)
    examples = Examples(owned.examples.inputs, torch.zeros(12).long())
    flat = replace(owned, examples=examples, features=torch.ones(12, 2))
    result = two_rounds(make(start_steps=3), toys.server(flat), toys.released())
    assert suspicions(result) == [0.5] * 12


@EACH
def test_a_flat_detector_is_not_moved_by_the_ranking(make):
    server, round = small_server(), noisy_round()
    state = make(start_steps=0).init(server, round.global_params)
    flat = replace(state, psi=Psi(*(torch.zeros_like(weight) for weight in state.psi)))
    result = make(lam=0.0).aggregate(flat, round, server)
    assert set(suspicions(result)) == {0.5}
    assert not any(weight.any() for weight in result.state.psi)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beta": 1.5}, "beta must be <= 1, got 1.5"),
        ({"form": "cubic"}, "form must be one of relu, linear, got 'cubic'"),
        ({"features": 5}, "features must be one of 3, 4, got '5'"),
        ({"theta_start": "zero"}, "theta_start must be one of normal, xavier, got 'zero'"),
        ({"theta_loss": "max"}, "theta_loss must be one of sum, mean, got 'max'"),
        ({"psi_update": "never"}, "psi_update must be one of before, after, got 'never'"),
        ({"hidden": 0}, "hidden must be >= 1, got 0"),
        ({"theta_rate": -1}, "theta_rate must be >= 0, got -1"),
        ({"psi_decay_every": 0}, "psi_decay_every must be >= 1, got 0"),
        ({"start_steps": -1}, "start_steps must be >= 0, got -1"),
        ({"halt_after": -1}, "halt_after must be >= 0, got -1"),
    ],
)
def test_bad_settings(values, message):
    with pytest.raises(SettingsError, match=message):
        DataDefensePaper(**values)


@EACH
def test_it_says_what_it_needs(make):
    with pytest.raises(ValueError, match=f"{make.name} needs a model and a defense set"):
        make().init(replace(toys.server(), defense_set=None), toys.released())
