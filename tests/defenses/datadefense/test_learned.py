import math
from dataclasses import replace
from itertools import product

import pytest
import torch
from tests import oracles
from tests.defenses.datadefense import toys
from tests.defenses.datadefense.learned_rounds import (
    BOX,
    DEFAULT,
    POISONED,
    in_the_box,
    is_sound,
    one_round,
    same_psi,
    started,
    steps,
)
from tests.records import marked_places, suspicions

from datadefense import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError, build
from datadefense.defenses import DataDefenseLearned
from datadefense.defenses.datadefense.detector import draw_psi, gamma, standardise
from datadefense.defenses.datadefense.detector_fit import fit
from datadefense.defenses.datadefense.losses import l_c, l_p
from datadefense.defenses.datadefense.penalties import NAMES


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("attackers", [0, 1, 4, 7])
def test_who_learned_the_poisoned_labels_loses_its_weight_and_the_others_keep_theirs(
    seed, attackers
):
    server, round = toys.server(seed=seed), toys.attacked_round(10, attackers)
    result = one_round(DataDefenseLearned(), round, server, started(seed))
    is_sound(result, round)
    assert marked_places(result) == POISONED
    assert result.weights[:attackers].tolist() == [0] * attackers
    fair = 1 / (10 - attackers)
    assert result.weights[attackers:].tolist() == pytest.approx([fair] * (10 - attackers), rel=0.1)
    for reason in result.reasons[:attackers]:
        assert reason.code in {"learned_poison", "moved_far"}


@pytest.mark.parametrize("corner", list(product((0, 1), repeat=3)), ids=str)
def test_any_start_of_theta_in_the_box_will_do(corner):
    round = toys.attacked_round()
    theta = torch.tensor([BOX[end][i] for i, end in enumerate(corner)]).double()
    result = one_round(DataDefenseLearned(), round, state=replace(started(), theta=theta))
    is_sound(result, round)
    assert float(result.weights[0]) == 0
    assert (result.weights[1:] > 0.08).all()


def test_theta_is_drawn_from_the_box_and_the_servers_seed():
    again = DataDefenseLearned().init(toys.server(), toys.released())
    assert torch.equal(again.theta, started(0).theta)
    assert same_psi(again.psi, started(0).psi)
    drawn = [started(seed).theta for seed in range(3)]
    assert all(map(in_the_box, drawn))
    assert len({tuple(theta.tolist()) for theta in drawn}) == 3


def slow_round(defense, state, round, server):
    """Weights, model, next theta and distances: Python loops, and autograd over everything."""
    owned, start = server.defense_set, round.global_params
    inputs, y = owned.examples.inputs, owned.examples.labels
    scores = gamma(state.psi, standardise(owned.features), y).tolist()
    marked = oracles.most_suspicious(scores, defense.beta, owned.known_clean.tolist())
    clean = [i for i in range(len(owned)) if i not in marked]

    def losses(params, part):
        logits = server.predict(params, inputs).tolist()
        return [oracles.log_odds_and_losses(logits[i], y.tolist()[i])[1] for i in part]

    def means(params):
        poison = oracles.mean_without_rises(losses(params, marked), losses(start, marked))
        return [oracles.mean(losses(params, clean)), poison]

    per_client = oracles.columns([means(start + update) for update in round.updates])
    distances = [oracles.norm(update) for update in round.updates.tolist()]
    usual = oracles.middle(state.distances) if state.distances else math.inf
    f = torch.tensor(
        oracles.penalties(*per_client, distances, means(start), usual),
        dtype=torch.float64,
    )
    theta = state.theta.clone().requires_grad_()
    kept = (1 - f @ theta).relu()
    C = kept / kept.sum()
    phi = start + sum(weight * update for weight, update in zip(C, round.updates, strict=True))
    z = server.predict(phi, inputs)
    loss = l_c(z, y)[clean].mean() + l_p(z, y)[marked].mean()
    (gradient,) = torch.autograd.grad(loss, theta)
    width = [high - low for low, high in zip(*BOX, strict=True)]
    scaled = [g * w for g, w in zip(gradient.tolist(), width, strict=True)]
    stepped = [
        oracles.between(t - defense.theta_rate * w * s / oracles.norm(scaled), low, high)
        for t, w, s, low, high in zip(state.theta.tolist(), width, scaled, *BOX, strict=True)
    ]
    first, second, _ = state.theta.tolist()
    blameless = [
        d for d, (w, p, _) in zip(distances, f.tolist(), strict=True) if first * w + second * p < 1
    ]
    past = [*state.distances, oracles.lower_median(blameless)]
    return C.tolist(), phi.tolist(), stepped, past


@pytest.mark.parametrize("seed", range(6))
def test_a_round_against_loops_and_autograd(seed):
    """In float64; psi and features stay in float32."""
    owned = toys.defense_set(seed=seed)
    double = Examples(owned.examples.inputs.double(), owned.examples.labels)
    server = toys.server(replace(owned, examples=double), seed)
    start = toys.released().double()
    noise = 0.4 * torch.randn(6, len(start), generator=generator(seed), dtype=torch.float64)
    noise *= torch.linspace(0.5, 2, 6)[:, None]
    defense = DataDefenseLearned()
    state = defense.init(server, start)
    for index in (1, 2):
        round = toys.round_of(noise.roll(index, 0), index, start)
        weights, params, theta, past = slow_round(defense, state, round, server)
        result = one_round(defense, round, server, state)
        assert result.params.dtype == torch.float64
        assert result.weights.tolist() == pytest.approx(weights, abs=1e-9)
        assert result.params.tolist() == pytest.approx(params, abs=1e-9)
        assert result.state.theta.tolist() == pytest.approx(theta, abs=1e-7)
        assert result.state.distances == pytest.approx(past)
        state = result.state


def slow_fit(psi, owned, margins, count, rate):
    """Adam by hand, in float64, on V / n + L_pred / |C| + l_consist / pairs."""
    weights = [weight.double() for weight in psi]
    first, second = ([torch.zeros_like(weight) for weight in weights] for _ in range(2))
    known, y = owned.known_clean.tolist(), owned.examples.labels
    h_1 = standardise(owned.features).double()
    pairs = sum(known) * (len(known) - sum(known))
    for step in range(1, count + 1):
        weights = [weight.detach().requires_grad_() for weight in weights]
        W1, W2, W3, W4 = weights
        y_hat = ((h_1 @ W1.T).relu() @ W2.T).softmax(1)
        pair = torch.cat([y_hat, torch.eye(y_hat.shape[1]).double()[y]], dim=1)
        scores = ((pair @ W3.T).relu() @ W4.T)[:, 0]
        gamma = (scores - scores.min()) / (scores.max() - scores.min())
        loss = sum(
            g * oracles.between(m, -DEFAULT.margin_clip, DEFAULT.margin_clip)
            for g, m in zip(gamma, margins.tolist(), strict=True)
        )
        loss = loss / len(known) + oracles.consistency(gamma, known) / max(1, pairs)
        for row, label, is_known in zip(y_hat, y, known, strict=True):
            if is_known:
                loss = loss - row[label].log() / sum(known)
        slopes = torch.autograd.grad(loss, weights)
        first = [0.9 * m + 0.1 * g for m, g in zip(first, slopes, strict=True)]
        second = [0.999 * v + 0.001 * g * g for v, g in zip(second, slopes, strict=True)]
        weights = [
            w.detach() - rate * m / (1 - 0.9**step) / ((v / (1 - 0.999**step)).sqrt() + 1e-8)
            for w, m, v in zip(weights, first, second, strict=True)
        ]
    return weights


@pytest.mark.parametrize("known", [0, 5, 12])
def test_the_detectors_steps_against_adam_by_hand(known):
    owned = toys.defense_set(12, 4, known)
    margins = 4 * torch.randn(16, generator=generator(0, "margins"))
    start = draw_psi(toys.WIDTH, toys.CLASSES, generator(0, "psi"), hidden=32)
    found = fit(start, owned, margins, steps(4, 1e-3))
    expected = slow_fit(start, owned, margins, 4, 1e-3)
    for before, one, two in zip(start, found, expected, strict=True):
        length = float((two - before).norm())
        assert length > 0.01
        assert float((one - two).norm()) < 0.02 * length


def test_theta_stays_in_its_box():
    defense, server = DataDefenseLearned(theta_rate=0.5), toys.server()
    state = started()
    seen = []
    for index in range(1, 51):
        draw = generator(index, "round")
        sizes = 10 ** (4 * torch.rand(5, 1, generator=draw) - 3)
        updates = sizes * torch.randn(5, len(toys.released()), generator=draw)
        round = toys.round_of(updates, index)
        result = defense.aggregate(state, round, server)
        is_sound(result, round)
        state = result.state
        seen.append(state.theta)
    assert len({tuple(theta.tolist()) for theta in seen}) > 3


def test_margins_count_up_to_a_limit():
    """A thousand times as sure a model starts the same detector, once all margins are clipped."""
    server = toys.server()
    states = [
        DataDefenseLearned().init(server, factor * toys.released()) for factor in (1000.0, 2000.0)
    ]
    assert min(map(abs, states[0].first_margins.values())) > DEFAULT.margin_clip
    assert same_psi(states[0].psi, states[1].psi)


def test_claims_and_provenance_are_not_read():
    round, owned = toys.attacked_round(), toys.defense_set()
    plain = one_round(DataDefenseLearned(), round)
    boasting = replace(round, num_examples=round.num_examples.flip(0) * 1000)
    told = toys.server(replace(owned, provenance=tuple(f"folder {i}" for i in range(100))))
    for other in (
        one_round(DataDefenseLearned(), boasting),
        one_round(DataDefenseLearned(), round, told),
        one_round(DataDefenseLearned(), replace(round, client_ids=tuple("abcdefghij"))),
    ):
        assert torch.equal(other.weights, plain.weights)
        assert torch.equal(other.params, plain.params)
        assert same_psi(other.state.psi, plain.state.psi)


def test_the_report_says_why():
    round, server = toys.attacked_round(), toys.server()
    state = started()
    result = one_round(DataDefenseLearned(), round, server, state)
    owned = server.defense_set
    scores = gamma(state.psi, standardise(owned.features), owned.examples.labels)
    assert suspicions(result) == pytest.approx(scores.tolist(), rel=1e-3)
    assert result.theta == dict(zip(NAMES, state.theta.tolist(), strict=True))
    assert set(result.evidence) == {"clean_loss", "poison_loss", "distance", *NAMES}
    costs = [
        [t * float(result.evidence[name][j]) for t, name in zip(state.theta, NAMES, strict=True)]
        for j in range(10)
    ]
    equal = float(result.weights.mean())
    for j, (reason, cost) in enumerate(zip(result.reasons, costs, strict=True)):
        if max(cost) > 0 and float(result.weights[j]) < equal:
            assert reason.code == NAMES[cost.index(max(cost))]
            fault = float(result.evidence[reason.code][j])
            shown = 1 + fault if reason.code == "moved_far" else 100 * fault
            assert reason.value == pytest.approx(shown)
        else:
            assert reason is None
    assert sum(reason is not None for reason in result.reasons) >= 1
    assert result.report["released_poison_loss"] > result.report["released_clean_loss"]
    assert "poison_share" not in result.report


@pytest.mark.parametrize("poisoned", [5, 20, 40])
def test_an_unknown_share_is_estimated_and_reported(poisoned):
    """Of 100 examples; never less than a fifth is marked."""
    owned = toys.defense_set(100 - poisoned, poisoned, 40)
    round = toys.attacked_round()
    result = one_round(DataDefenseLearned(beta="auto"), round, toys.server(owned))
    share, error = result.report["poison_share"], result.report["poison_share_error"]
    assert abs(share - poisoned / 100) <= 2 * error + 0.02
    assert abs(len(marked_places(result)) - 100 * max(0.2, share)) <= 0.5
    assert float(result.weights[0]) == 0


def test_of_a_share_that_cannot_be_estimated_a_fifth_is_marked():
    round, server = toys.attacked_round(), toys.server(toys.defense_set(80, 20, 4))
    result = one_round(DataDefenseLearned(beta="auto"), round, server)
    assert "poison_share" not in result.report
    assert len(marked_places(result)) == 20
    is_sound(result, round)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"beta": 1.5}, "beta must be <= 1, got 1.5"),
        ({"beta": -0.1}, "beta must be >= 0, got -0.1"),
        ({"beta": "x"}, "beta must be a number or auto, got 'x'"),
        ({"beta": float("nan")}, "beta must be a finite number, got nan"),
        ({"theta_rate": -1}, "theta_rate must be >= 0, got -1"),
        ({"theta_rate": 2.0}, "theta_rate must be <= 1, got 2"),
        ({"psi_steps": -1}, "psi_steps must be >= 0, got -1"),
        ({"psi_steps": 1.5}, "psi_steps must be an integer, got 1.5"),
        ({"halt_after": -1}, "halt_after must be >= 0, got -1"),
    ],
)
def test_bad_settings(values, message):
    with pytest.raises(SettingsError, match=message):
        DataDefenseLearned(**values)


def test_settings_as_texts():
    made = build(DataDefenseLearned, {"beta": "auto", "halt_after": "none", "psi_steps": "0"})
    assert made == DataDefenseLearned(beta="auto", halt_after=None, psi_steps=0)
    assert build(DataDefenseLearned, {"beta": "0.3", "halt_after": "7"}) == DataDefenseLearned(
        0.3, halt_after=7
    )
    with pytest.raises(SettingsError, match="beta must be a number or auto, got 'x'"):
        build(DataDefenseLearned, {"beta": "x"})


def test_it_says_what_it_needs():
    with pytest.raises(ValueError, match="datadefense-learned needs a model and a defense set"):
        DataDefenseLearned().init(replace(toys.server(), defense_set=None), toys.released())
