"""What the learned form remembers: a set that grows, files, halts."""

from dataclasses import replace

import pytest
import torch
from tests.defenses.datadefense import toys
from tests.defenses.datadefense.learned_rounds import (
    POISONED,
    is_sound,
    one_round,
    same_psi,
    started,
    steps,
)
from tests.records import marked_places, said, suspicions

from datadefense import load_state, save_state
from datadefense.core.rng import generator
from datadefense.defenses import DataDefenseLearned
from datadefense.defenses.datadefense.detector import Psi
from datadefense.defenses.datadefense.detector_fit import fit
from datadefense.defenses.datadefense.learned import LearnedState
from datadefense.defenses.datadefense.losses import margin


def test_a_set_that_grows_and_is_corrected_keeps_the_state():
    defense, old = DataDefenseLearned(psi_steps=0), toys.defense_set()
    first = one_round(defense, toys.attacked_round())
    more = toys.defense_set(6, 4, 0, seed=9)
    grown = old.add(more).mark(old.ids[30:35]).mark(old.ids[:2], clean=False)
    later = torch.full_like(toys.released(), 0.3)
    round = toys.round_of([toys.honest(0), toys.honest(1)], 2, later)
    second = one_round(defense, round, toys.server(grown), first.state)
    is_sound(second, round)
    assert same_psi(second.state.psi, first.state.psi)
    assert len(suspicions(second)) == 110
    margins = second.state.first_margins
    assert tuple(margins) == grown.ids
    started = margin(toys.predict(toys.released(), old.examples.inputs), old.examples.labels)
    assert [margins[example] for example in old.ids] == started.tolist()
    today = margin(toys.predict(later, more.examples.inputs), more.examples.labels)
    assert [margins[one] for one in more.ids] == pytest.approx(today.tolist(), abs=1e-5)
    assert not set(marked_places(second)) & set(range(30, 35))


def test_examples_that_were_taken_out_are_forgotten_and_order_does_not_matter():
    defense, old = DataDefenseLearned(), toys.defense_set()
    first = one_round(defense, toys.attacked_round())
    order = torch.randperm(100, generator=generator(0))[:70]
    part = old.take(order)
    second = one_round(defense, toys.attacked_round(index=2), toys.server(part), first.state)
    expected = {example: first.state.first_margins[example] for example in part.ids}
    assert second.state.first_margins == expected
    poisoned = {place for place, row in enumerate(order.tolist()) if row in POISONED}
    assert len(poisoned & set(marked_places(second))) >= len(poisoned) - 2


def test_the_detector_learns_from_the_mean_of_first_and_present_margins():
    defense, server, owned = DataDefenseLearned(), toys.server(), toys.defense_set()
    fallen = toys.released() + toys.attacker(0)
    round = toys.round_of([toys.honest(0), toys.honest(1)], 1, fallen)
    result = defense.aggregate(started(), round, server)
    inputs, y = owned.examples.inputs, owned.examples.labels
    first, now = (margin(toys.predict(at, inputs), y) for at in (toys.released(), result.params))
    assert (first[80:] < 0).all()
    assert (now[80:] > 0).all()
    expected = fit(started().psi, owned, (first + now) / 2, steps(3, defense.psi_rate))
    assert same_psi(result.state.psi, expected)


def test_a_model_that_is_poisoned_later_does_not_talk_the_detector_out_of_what_it_knew():
    defense, server = DataDefenseLearned(), toys.server()
    state = started()
    fallen = toys.released() + toys.attacker(0)
    sure = margin(
        toys.predict(fallen, server.defense_set.examples.inputs[80:]), torch.zeros(20).long()
    )
    assert (sure > 0).all()
    for index in range(1, 31):
        round = toys.round_of([toys.honest(seed) for seed in range(4)], index, fallen)
        result = defense.aggregate(state, round, server)
        state = result.state
    assert len(set(marked_places(result)) & set(POISONED)) >= 18


@pytest.mark.parametrize("beta", [0.2, "auto"])
def test_from_a_file_it_goes_on_to_the_same_bits(tmp_path, beta):
    defense, server = DataDefenseLearned(beta=beta), toys.server()
    start = started()
    state = defense.aggregate(start, toys.attacked_round(index=1), server).state
    save_state(tmp_path / "state", state)
    restored = load_state(tmp_path / "state", like=start)
    assert restored.first_margins == state.first_margins
    for index in (2, 3):
        round = toys.attacked_round(index=index)
        straight = defense.aggregate(state, round, server)
        resumed = defense.aggregate(restored, round, server)
        assert torch.equal(straight.params, resumed.params)
        assert torch.equal(straight.weights, resumed.weights)
        assert said(straight) == said(resumed)
        state, restored = straight.state, resumed.state
        assert torch.equal(state.theta, restored.theta)
        assert same_psi(state.psi, restored.psi)
        assert state.distances == restored.distances


def test_a_first_state_survives_a_file(tmp_path):
    """It remembers no distance."""
    start = started()
    save_state(tmp_path / "state", start)
    back = load_state(tmp_path / "state", like=start)
    assert isinstance(back, LearnedState)
    assert back.distances == ()


@pytest.mark.parametrize("halt_after", [0, 2])
def test_after_the_halt_theta_and_psi_stay(halt_after):
    defense, server = DataDefenseLearned(halt_after=halt_after), toys.server()
    state = started()
    for index in range(1, 5):
        before = state
        state = defense.aggregate(before, toys.attacked_round(index=index), server).state
        learns = index <= halt_after
        assert same_psi(before.psi, state.psi) != learns
        assert torch.equal(before.theta, state.theta) != learns


def test_a_halted_detector_is_not_restarted():
    defense, server = DataDefenseLearned(halt_after=0), toys.server()
    state = started()
    flat = replace(state, psi=Psi(*(torch.zeros_like(weight) for weight in state.psi)))
    result = defense.aggregate(flat, toys.attacked_round(), server)
    assert "restarted" not in result.report
    assert same_psi(result.state.psi, flat.psi)


def test_either_half_can_be_held():
    server, round = toys.server(), toys.attacked_round()
    start = started()
    held = one_round(DataDefenseLearned(theta_rate=0.0), round, server, start).state
    assert torch.equal(held.theta, start.theta)
    assert not same_psi(held.psi, start.psi)
    held = one_round(DataDefenseLearned(psi_steps=0), round, server, start).state
    assert not torch.equal(held.theta, start.theta)
    assert same_psi(held.psi, start.psi)
