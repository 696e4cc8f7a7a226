"""What the default must survive: the promise under any updates and any set, and bad input."""

import math
from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.defenses.datadefense import sets, toys
from tests.records import marked_places, said

from datadefense import Examples, load_state, save_state
from datadefense.core.defense_set import DefenseSet
from datadefense.core.rng import generator
from datadefense.defenses import DataDefense
from datadefense.defenses.datadefense.algorithm import PENALTIES
from datadefense.testing import toy_round, toy_server

NO_PENALTIES = dict.fromkeys(PENALTIES, 0.0)
"""Settings under which nothing but the hold stands between the clients and the model."""
DEFENSES = [DataDefense(), DataDefense(**NO_PENALTIES), DataDefense(slack=0.0, **NO_PENALTIES)]
steps = st.tuples(st.sampled_from(sets.KINDS), st.integers(1, 8), st.integers(0, 10**6))


def watched(defense=None, owned=None):
    return sets.Watched(defense or DataDefense(), sets.server(owned), toys.released())


@pytest.mark.slow
@pytest.mark.parametrize("defense", DEFENSES, ids=["default", "no penalties", "no slack"])
@settings(max_examples=25)
@given(st.lists(steps, min_size=1, max_size=10))
def test_the_promise_holds_for_any_updates(defense, rounds):
    run = watched(defense)
    for kind, clients, seed in rounds:
        run.play(sets.hostile(kind, clients, run.params, seed))
        assert set(sets.POISONED) <= set(run.sure)


@pytest.mark.slow
def test_the_promise_holds_for_updates_without_a_plan():
    """Every cell from the whole range of floats, NaN and infinity aside."""
    cell = st.floats(width=32, allow_nan=False, allow_infinity=False)
    row = st.lists(cell, min_size=27, max_size=27)

    @settings(max_examples=40)
    @given(st.lists(row, min_size=1, max_size=3), st.lists(row, min_size=1, max_size=3))
    def look(first, second):
        run = watched(DataDefense(**NO_PENALTIES))
        for rows in (first, second):
            updates = torch.tensor(rows, dtype=torch.float32)
            average = run.params.double() + updates.double().sum(0)
            if (average.abs() < 1e38).all():
                run.play(updates)

    look()


def averaged_success(kind, clients, rounds):
    """What the model knows after as many rounds of plain averages of the same attack."""
    params = toys.released()
    for index in range(rounds):
        params = params + sets.hostile(kind, clients, params, index).mean(0)
    return sets.success(toys.predict, params, sets.owned().examples, sets.POISONED)


@pytest.mark.slow
@pytest.mark.parametrize("defense", DEFENSES[:2], ids=["default", "no penalties"])
@pytest.mark.parametrize("kind", ["patient", "majority", "half", "clones"])
def test_no_patience_moves_the_reference(kind, defense):
    """Every round, a hundred times; averaging learns the poison from the same clients."""
    run = watched(defense)
    for index in range(100):
        result = run.play(sets.hostile(kind, 6, run.params, index))
        assert set(sets.POISONED) <= set(marked_places(result))
    assert run.held > 3
    known = sets.success(toys.predict, run.params, sets.owned().examples, run.sure)
    assert known <= result.report["known_poison_limit"] + 1e-6
    assert averaged_success(kind, 6, 100) > result.report["known_poison_limit"] + 0.2


@pytest.mark.parametrize("kind", ["learned", "boosted", "half"])
def test_attackers_from_the_first_round_on_and_nobody_else(kind):
    run = watched()
    for index in range(12):
        result = run.play(sets.hostile(kind, 5, run.params, index))
    assert result.report["fallback"].startswith("datadefense ")
    assert all(result.reasons)
    after = run.play([sets.towards_honest(run.params, 0.3, one) for one in range(5)])
    assert "fallback" not in after.report


def test_after_any_attack_honest_clients_count_again():
    run = watched()
    for index, kind in enumerate(sets.KINDS):
        run.play(sets.hostile(kind, 6, run.params, index))
    for _ in range(12):
        result = run.play([sets.towards_honest(run.params, 0.3, client) for client in range(6)])
    assert (result.weights > 0.1).all()


@pytest.mark.parametrize("kind", ["patient", "majority", "half"])
def test_from_a_file_it_goes_on_to_the_same_bits_and_keeps_the_promise(tmp_path, kind):
    straight, resumed = watched(), watched()
    for index in range(12):
        updates = sets.hostile(kind, 6, straight.params, index)
        one, two = straight.play(updates), resumed.play(updates)
        assert torch.equal(one.params, two.params)
        assert torch.equal(one.weights, two.weights)
        assert said(one) == said(two)
        assert one.state.distances == two.state.distances
        assert one.state.first_margins == two.state.first_margins
        save_state(tmp_path / "state", resumed.state)
        like = resumed.defense.init(resumed.server, resumed.params)
        resumed.state = load_state(tmp_path / "state", like=like)
    assert straight.held == resumed.held > 0


POOL = toys.defense_set(100, 40, 70)
"""Examples of which a set has some today and others tomorrow."""
changes = st.fixed_dictionaries(
    {
        "dropped": st.sets(st.integers(0, 139), max_size=90),
        "marks": st.sets(st.integers(0, 139), max_size=10),
        "relabelled": st.dictionaries(st.integers(0, 139), st.integers(0, 2), max_size=6),
        "same_ids": st.booleans(),
        "shuffled": st.randoms(use_true_random=False),
    }
)


def changed(change):
    """The pool without some, with other marks and labels; an id may stay or be the content's."""
    labels, known = POOL.examples.labels.clone(), POOL.known_clean.clone()
    for place, label in change["relabelled"].items():
        labels[place] = label
    known[list(change["marks"])] ^= True
    kept = [place for place in range(140) if place not in change["dropped"]]
    change["shuffled"].shuffle(kept)
    ids = POOL.ids if change["same_ids"] else ()
    whole = DefenseSet(Examples(POOL.examples.inputs, labels), known, POOL.features, ids)
    return sets.server(whole.take(torch.tensor(kept)))


@pytest.mark.slow
def test_the_promise_holds_for_a_set_that_changes_between_rounds():
    """Grows, shrinks, is marked anew, gets other labels: first margins go with the ids."""
    sure = []

    @settings(max_examples=40)
    @given(st.lists(st.tuples(steps, changes), min_size=1, max_size=6))
    def look(rounds):
        run = watched(owned=POOL)
        for (kind, clients, seed), change in rounds:
            run.play(sets.hostile(kind, clients, run.params, seed), changed(change))
            sure.append(len(run.sure) > 0)

    look()
    assert sum(sure) > len(sure) / 2


def test_a_set_that_grows_and_is_marked_anew_keeps_its_references():
    old = sets.owned()
    run = watched(owned=old)
    first = dict(run.state.first_margins)
    run.play(toys.attacked_round(8, 2).updates)
    more = toys.defense_set(6, 4, 0, seed=9)
    grown = old.add(more).mark(old.ids[30:35]).mark(old.ids[:2], clean=False)
    result = run.play(toys.attacked_round(8, 2).updates, sets.server(grown))
    assert set(sets.POISONED) <= set(marked_places(result))
    kept = result.state.first_margins
    assert {name: kept[name] for name in sets.names(old)} == first
    smaller = old.take(torch.arange(20, 120))
    result = run.play(toys.attacked_round(8, 2).updates, sets.server(smaller))
    assert result.state.first_margins == kept


def test_an_example_that_comes_back_is_judged_by_the_first_model():
    """The poison leaves the set, the model learns it, the poison comes back: it is sure still."""
    run = watched()
    clean = sets.server(sets.owned().mark(sets.owned().ids, clean=True).take(torch.arange(80)))
    for _ in range(6):
        run.play(toys.attacked_round(8, 8).updates, clean)
    known = sets.success(toys.predict, run.params, sets.owned().examples, sets.POISONED)
    assert known > 0.5
    result = run.play(toys.attacked_round(8, 2).updates, sets.server())
    assert set(sets.POISONED) <= set(marked_places(result))


def test_no_more_than_so_many_margins_of_absent_examples_are_remembered():
    run, pool = watched(DataDefense(remembered_margins=30), POOL), POOL
    for start in range(0, 120, 20):
        part = pool.take(torch.arange(start, start + 20))
        state = run.defense.aggregate(
            run.state,
            toys.round_of(toys.attacked_round(4, 0).updates, 1, run.params),
            sets.server(part),
        ).state
        run.state = replace(state, first_margins=dict(state.first_margins))
        assert set(sets.names(part)) <= set(state.first_margins)
    newer = toys.defense_set(5, 5, 3, seed=77)
    state = run.defense.aggregate(
        run.state,
        toys.round_of(toys.attacked_round(4, 0).updates, 2, run.params),
        sets.server(newer),
    ).state
    assert set(sets.names(newer)) <= set(state.first_margins)
    assert len(state.first_margins) == 30 + len(newer)


def test_a_model_that_fell_before_does_not_talk_the_set_out_of_what_is_sure():
    """It may not learn more, but it may unlearn, and need not do so at once."""
    run = watched()
    run.params = toys.released() + toys.attacker(0)
    known = [sets.success(toys.predict, run.params, sets.owned().examples, sets.POISONED)]
    for _ in range(30):
        result = run.play([0.2 * (toys.released() - run.params)] * 3)
        assert set(sets.POISONED) <= set(marked_places(result))
        assert (result.report["corrected"], result.report["step"]) == (0, 1)
        known.append(sets.success(toys.predict, run.params, sets.owned().examples, run.sure))
    assert known[0] > 0.9
    assert known[1] > result.report["known_poison_limit"] > known[-1]
    assert run.held == 0


def several_rounds(server, *, start=None, defense=None):
    """Rounds of honest clients, attackers and noise on any server: each is sound."""
    defense, params = defense or DataDefense(), toys.released() if start is None else start
    state = defense.init(server, params)
    for index in range(1, 5):
        noise = 0.1 * torch.randn(4, len(params), generator=generator(index, "several"))
        noise[:2] += torch.stack([toys.honest(index), toys.attacker(0)])
        round = toys.round_of(noise, index, params)
        result = sets.is_sound(defense.aggregate(state, round, server), round)
        state, params = result.state, result.params
    return result


@pytest.mark.parametrize("kind", ["none", "few", "all", "one class", "wrong", "all but one"])
def test_marks_of_any_kind(kind):
    """None known clean, all, some of one class, some of the poison by mistake."""
    owned = sets.owned()
    known = {
        "none": torch.zeros(120, dtype=torch.bool),
        "few": torch.arange(120) < DataDefense().fewest_known - 1,
        "all": torch.ones(120, dtype=torch.bool),
        "one class": owned.known_clean & (owned.examples.labels == 1),
        "wrong": owned.known_clean | (torch.arange(120) > 118),
        "all but one": torch.arange(120) < 119,
    }[kind]
    result = several_rounds(sets.server(replace(owned, known_clean=known)))
    assert not known[marked_places(result)].any()
    if kind in {"none", "few", "all"}:
        assert marked_places(result) == []
        assert "weakened" in result.report


@pytest.mark.parametrize("count", [1, 2, 3, 5, 8])
def test_a_handful_of_examples(count):
    poisoned = count // 2
    for known in {0, 1, count - poisoned}:
        several_rounds(sets.server(toys.defense_set(count - poisoned, poisoned, known)))


def test_all_examples_but_one_vanish_and_come_back():
    run, owned = watched(), sets.owned()
    for server in (sets.server(owned.take(torch.tensor([95]))), sets.server(owned)):
        for kind in ("half", "majority"):
            run.play(sets.hostile(kind, 5, run.params, 0), server)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e38])
def test_logits_of_every_model_that_are_not_finite(value):
    def broken(params, inputs):
        return toys.predict(params, inputs) * value

    several_rounds(replace(sets.server(), predict=broken))


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -float("inf"), 1e38])
@pytest.mark.parametrize("column", [0, 1, slice(None)])
def test_logits_that_are_not_finite_from_the_second_model_on(value, column):
    """The first model is sound, so the poison is sure; nothing broken is released."""

    def broken(params, inputs):
        logits = toys.predict(params, inputs).clone()
        if not torch.equal(params, toys.released()):
            logits[:, column] = value
        return logits

    result = several_rounds(replace(sets.server(), predict=broken))
    assert set(sets.POISONED) <= set(marked_places(result))
    if math.isnan(value):
        assert torch.equal(result.params, toys.released())


def test_a_model_that_is_not_finite_only_at_the_average_is_not_released():
    server, round = sets.server(), toys.attacked_round()
    sound = [round.global_params, *(round.global_params + update for update in round.updates)]

    def predict(params, inputs):
        logits = toys.predict(params, inputs)
        return logits if any(torch.equal(params, known) for known in sound) else logits * torch.nan

    defense, broken = DataDefense(), replace(server, predict=predict)
    state = defense.init(broken, toys.released())
    result = sets.is_sound(defense.aggregate(state, round, broken), round)
    assert torch.equal(result.params, round.global_params)
    assert result.report["step"] == 0


def test_a_client_whose_losses_are_not_finite_is_left_out():
    updates = torch.stack([toys.honest(seed) for seed in range(5)])
    updates[2] = 3e38 * updates[2].sign()
    result = watched().play(updates)
    assert result.weights[2] == 0
    assert (result.weights[[0, 1, 3, 4]] > 0.15).all()
    assert result.reasons[2].code == "loss_not_finite"


def test_one_class_and_one_label():
    examples = Examples(torch.randn(20, toys.WIDTH, generator=generator(0)), torch.zeros(20).long())
    server = sets.server(DefenseSet(examples, torch.arange(20) < 8, examples.inputs))
    several_rounds(server)
    narrow = replace(server, predict=lambda params, inputs: toys.predict(params, inputs)[:, :1])
    assert marked_places(several_rounds(narrow)) == []


@pytest.mark.parametrize("seed", range(3))
def test_rounds_of_the_toy_server(seed):
    """A model that was never trained, whose wrong labels are no stranger than the right ones."""
    defense, server = DataDefense(), toy_server(seed)
    for clients in (1, 2, 11):
        round = toy_round(clients, seed)
        state = defense.init(server, round.global_params)
        sets.is_sound(defense.aggregate(state, round, server), round)


@pytest.mark.parametrize("share", [0, 1e-6, 0.02])
def test_a_minority_that_hardly_moves_never_becomes_the_measure(share):
    run = watched()
    for index in range(6):
        updates = torch.stack([toys.honest(index % 4 * 10 + client) for client in range(10)])
        updates[:4] *= share
        assert (run.play(updates).weights[4:] > 0.05).all()


def test_rounds_in_which_nobody_moved_do_not_end_the_defense():
    run = watched()
    for _ in range(12):
        result = run.play(torch.zeros(5, len(run.params)))
    assert torch.equal(run.params, toys.released())
    assert result.state.distances == ()
    again = run.play(toys.attacked_round().updates)
    assert float(again.weights[0]) == 0
    assert (again.weights[1:] > 0.08).all()
