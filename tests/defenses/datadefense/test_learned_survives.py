"""What the default must survive: detectors, splits, sets and rounds that are as bad as can be."""

from dataclasses import replace

import pytest
import torch
from tests.defenses.datadefense import toys
from tests.defenses.datadefense.learned_rounds import (
    POISONED,
    is_sound,
    one_round,
    several_rounds,
    started,
)
from tests.records import marked_places, suspicions

from datadefense import Examples
from datadefense.core.defense_set import DefenseSet
from datadefense.core.rng import generator
from datadefense.defenses import DataDefenseLearned
from datadefense.defenses.datadefense.client_losses import WORST
from datadefense.defenses.datadefense.detector import Psi
from datadefense.testing import toy_round, toy_server

pytestmark = pytest.mark.slow
SHORT = DataDefenseLearned(start_steps=10)
"""For what must be survived, not learned."""
FLIPPED = "the detector ranked known clean examples above the others"


@pytest.mark.parametrize("how", ["zero", "flipped", "dead"])
def test_a_detector_that_has_collapsed_recovers(how):
    """Flat, upside down, or with no hidden unit alive."""
    defense, server, round = DataDefenseLearned(), toys.server(), toys.attacked_round()
    state = started()
    W1, W2, W3, W4 = state.psi
    broken = {
        "zero": Psi(*(torch.zeros_like(weight) for weight in state.psi)),
        "flipped": Psi(W1, W2, W3, -W4),
        "dead": Psi(W1, W2, -W3.abs(), W4),
    }[how]
    result = one_round(defense, round, server, replace(state, psi=broken))
    is_sound(result, round)
    assert result.report["restarted"] == FLIPPED
    if how != "flipped":
        assert set(suspicions(result)) == {0.5}
    again = one_round(defense, replace(round, index=2), server, result.state)
    assert marked_places(again) == POISONED
    assert "restarted" not in again.report
    assert float(again.weights[0]) == 0


def test_a_sound_detector_is_not_restarted():
    result = one_round(DataDefenseLearned(), toys.attacked_round())
    assert "restarted" not in result.report


@pytest.mark.parametrize("labels", ["mixed", "one"])
@pytest.mark.parametrize("value", [0.0, 7.0])
def test_features_that_say_nothing_are_survived(labels, value):
    owned = toys.defense_set()
    if labels == "one":
        owned = replace(owned, examples=Examples(owned.examples.inputs, torch.zeros(100).long()))
    server = toys.server(replace(owned, features=torch.full((100, 3), value)))
    result = several_rounds(SHORT, server, toys.released())
    if labels == "one":
        assert set(suspicions(result)) == {0.5}


@pytest.mark.parametrize("size", [1e30, 3e38])
def test_features_near_the_end_of_the_float_range_are_survived(size):
    owned = toys.defense_set()
    signs = owned.features.sign()
    several_rounds(SHORT, toys.server(replace(owned, features=size * signs)), toys.released())


@pytest.mark.parametrize("beta", [0.0, 1e-9, 0.8, 1.0])
def test_empty_and_full_splits(beta):
    result = several_rounds(replace(SHORT, beta=beta), toys.server(), toys.released())
    assert len(marked_places(result)) == {0.0: 0, 1e-9: 1}.get(beta, 80)
    if beta == 0:
        assert result.evidence["poison_loss"].tolist() == [0] * 4
        assert result.evidence["learned_poison"].tolist() == [0] * 4


@pytest.mark.parametrize("beta", [0.0, 0.2, 1.0, "auto"])
@pytest.mark.parametrize("count", [1, 2, 3, 4, 5])
def test_a_handful_of_examples(count, beta):
    poisoned = count // 2
    for known in {0, 1, count - poisoned}:
        owned = toys.defense_set(count - poisoned, poisoned, known)
        several_rounds(replace(SHORT, beta=beta), toys.server(owned), toys.released(), 2)


@pytest.mark.parametrize("kind", ["none", "all", "one class", "wrong"])
def test_marks_of_any_kind_do_not_let_the_attacker_in(kind):
    """None known clean; all, and then nothing is marked; some of one class; 15 % marked wrongly."""
    owned = toys.defense_set()
    known = {
        "none": torch.zeros(100, dtype=torch.bool),
        "all": torch.ones(100, dtype=torch.bool),
        "one class": owned.known_clean & (owned.examples.labels == 1),
        "wrong": owned.known_clean | (torch.arange(100) > 96),
    }[kind]
    server, round = toys.server(replace(owned, known_clean=known)), toys.attacked_round()
    result = one_round(DataDefenseLearned(), round, server)
    is_sound(result, round)
    marked = marked_places(result)
    assert not known[marked].any()
    if kind == "all":
        assert marked == []
        return
    assert len(set(marked) & set(POISONED)) >= 16
    assert float(result.weights[0]) == 0
    assert (result.weights[1:] > 0.05).all()


def test_a_single_honest_client_is_followed():
    round = toys.round_of([toys.honest(0)])
    result = one_round(DataDefenseLearned(), round)
    assert result.weights.tolist() == [1]
    assert torch.allclose(result.params, round.global_params + round.updates[0])


def test_a_single_attacker_is_not():
    round = toys.round_of([toys.attacker(0)])
    result = one_round(DataDefenseLearned(), round)
    is_sound(result, round)
    assert result.report["fallback"] == "datadefense-learned trusts no client: kept the model"


@pytest.mark.parametrize("size", [1e3, 1e10, 1e38])
def test_when_all_clients_have_blown_up_the_model_is_kept(size):
    updates = size * torch.randn(6, len(toys.released()), generator=generator(0))
    round = toys.round_of(updates.clamp(-3e38, 3e38))
    defense, server = DataDefenseLearned(), toys.server()
    result = one_round(defense, round)
    is_sound(result, round)
    assert result.report["fallback"] == "datadefense-learned trusts no client: kept the model"
    assert result.state.distances == ()
    again = one_round(defense, toys.attacked_round(index=2), server, result.state)
    assert float(again.weights[0]) == 0
    assert (again.weights[1:] > 0.08).all()


def test_when_all_clients_have_learned_the_poison_the_model_is_kept():
    round = toys.attacked_round(6, 6)
    result = one_round(DataDefenseLearned(), round)
    is_sound(result, round)
    assert "fallback" in result.report


def test_a_client_whose_losses_are_not_finite_is_left_out():
    updates = torch.stack([toys.honest(seed) for seed in range(5)])
    updates[2] = 3e38 * updates[2].sign()
    round = toys.round_of(updates)
    result = one_round(DataDefenseLearned(), round)
    is_sound(result, round)
    assert result.weights[2] == 0
    assert (result.weights[[0, 1, 3, 4]] > 0.2).all()
    assert result.evidence["clean_loss"].max() <= WORST


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e38])
def test_losses_of_every_model_that_are_not_finite(value):
    def broken(params, inputs):
        return toys.predict(params, inputs) * value

    several_rounds(SHORT, replace(toys.server(), predict=broken), toys.released())


def test_a_model_that_is_not_finite_only_at_the_average_leaves_theta_alone():
    """The loss has no gradient there; theta must not become nan."""
    server, round = toys.server(), toys.attacked_round()
    models = [round.global_params + update for update in round.updates]

    def predict(params, inputs):
        logits = toys.predict(params, inputs)
        known = [round.global_params, *models]
        return logits if any(torch.equal(params, one) for one in known) else logits * torch.nan

    defense = DataDefenseLearned()
    state = started()
    result = one_round(defense, round, replace(server, predict=predict), state)
    is_sound(result, round)
    assert torch.equal(result.state.theta, state.theta)


def test_one_class_only_is_survived():
    def predict(params, inputs):
        return toys.predict(params, inputs)[:, :1]

    examples = Examples(torch.randn(20, toys.WIDTH, generator=generator(0)), torch.zeros(20).long())
    owned = DefenseSet(examples, torch.arange(20) < 5, examples.inputs)
    server = replace(toys.server(owned), predict=predict)
    several_rounds(SHORT, server, toys.released())


def test_a_round_in_which_nobody_moved_does_not_end_the_defense():
    """A usual distance of 0 would shut everybody out for good."""
    defense, server = DataDefenseLearned(), toys.server()
    silent = toys.round_of(torch.zeros(5, len(toys.released())))
    result = one_round(defense, silent)
    is_sound(result, silent)
    assert torch.equal(result.params, toys.released())
    assert result.state.distances == ()
    for index in range(2, 30):
        result = defense.aggregate(result.state, replace(silent, index=index), server)
    again = one_round(defense, toys.attacked_round(index=30), server, result.state)
    assert float(again.weights[0]) == 0
    assert (again.weights[1:] > 0.08).all()


def test_clients_that_learned_nothing_do_not_shut_out_the_others():
    updates = torch.stack([toys.honest(seed) for seed in range(9)])
    updates[:1] = 0
    result = one_round(DataDefenseLearned(), toys.round_of(updates))
    assert (result.weights > 0.05).all()
    assert result.state.distances[0] > 0


@pytest.mark.parametrize("seed", range(3))
def test_rounds_of_the_toy_server(seed):
    """A model that was never trained, whose wrong labels are no stranger than the right ones."""
    defense, server = SHORT, toy_server(seed)
    for clients in (1, 2, 11):
        round = toy_round(clients, seed)
        is_sound(one_round(defense, round, server), round)


def test_clients_that_hardly_move_do_not_shut_out_the_others_for_good():
    defense, server, params = DataDefenseLearned(), toys.server(), toys.released()
    state = defense.init(server, params)
    for index in range(1, 6):
        draw = generator(index, "lazy")
        updates = 0.01 * torch.randn(10, len(params), generator=draw)
        if index == 1:
            updates[:3] *= 1e-3
        result = defense.aggregate(state, toys.round_of(updates, index, params), server)
        state = result.state
    assert (result.weights > 0).all()
    updates[:3] *= 1e-3
    later = defense.aggregate(state, toys.round_of(updates, 6, params), server)
    assert (later.weights > 0).all()


def rounds_with_idle_clients(idle_of, clients, share, rounds):
    """Play rounds in which some clients send a share of their update; return all weights."""
    defense, server, params = DataDefenseLearned(), toys.server(), toys.released()
    state, weights = defense.init(server, params), []
    for index in range(1, rounds + 1):
        updates = torch.stack([toys.honest(index % 4 * clients + one) for one in range(clients)])
        updates[: idle_of(index)] *= share
        result = defense.aggregate(state, toys.round_of(updates, index, params), server)
        state, params = result.state, result.params
        weights.append(result.weights)
    return weights


@pytest.mark.parametrize(("clients", "idle"), [(3, 1), (4, 1), (5, 2), (7, 3), (10, 3), (10, 4)])
@pytest.mark.parametrize("share", [0, 1e-6, 0.02, 0.2])
def test_a_minority_that_hardly_moves_never_becomes_the_measure(clients, idle, share):
    for weights in rounds_with_idle_clients(lambda _: idle, clients, share, 5):
        assert (weights[idle:] > 0.5 / clients).all()


@pytest.mark.parametrize("share", [1e-30, 1e-3, 0.02])
def test_a_majority_that_hardly_moves_in_the_first_round_is_got_over(share):
    """Of a pool of four in ten, it is a majority in one round out of six."""
    played = rounds_with_idle_clients(lambda index: 6 if index == 1 else 3, 10, share, 4)
    assert (played[0][6:] == 0).all()
    for weights in played[2:]:
        assert (weights[3:] > 0.05).all()


def test_one_round_of_far_and_blameless_clients_does_not_move_the_measure():
    """Six attackers of ten, once: the usual distance is a median over rounds."""
    defense, server, params = DataDefenseLearned(), toys.server(), toys.released()
    state = defense.init(server, params)
    for index in range(1, 6):
        round = toys.round_of([toys.honest(one) for one in range(10)], index, params)
        state = defense.aggregate(state, round, server).state
    usual = max(state.distances)
    aside = torch.zeros_like(params)
    aside[-toys.CLASSES :] = 100 * usual
    far = [aside] * 6 + [toys.honest(one) for one in range(4)]
    result = defense.aggregate(state, toys.round_of(far, 6, params), server)
    assert (result.evidence["worse_on_clean"][:6] < 1e-6).all()
    assert (result.weights[:6] == 0).all()
    assert max(result.state.distances) > 10 * usual
    later = defense.aggregate(result.state, toys.round_of(far, 7, params), server)
    assert (later.weights[:6] == 0).all()
    assert (later.weights[6:] > 0.2).all()
