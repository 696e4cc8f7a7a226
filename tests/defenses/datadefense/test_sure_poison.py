import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.defenses.datadefense import sets, toys

from datadefense import Examples, Server
from datadefense.defenses.datadefense import client_losses
from datadefense.defenses.datadefense.client_losses import WORST
from datadefense.defenses.datadefense.losses import margin
from datadefense.defenses.datadefense.sure_poison import (
    Criterion,
    SurePoison,
    sure_poison,
    suspicion,
)

DEFAULT = {"share": 0.1, "chance": 3e-5}
FEWEST = 5


def sure(margins, labels, known_clean, *, share=0.1, chance=3e-5, **rest):
    """What is surely poisoned, where not said otherwise by the default's criterion."""
    chosen = {"fewest_known": FEWEST, "prior": 10, "pile_share": 0.5} | rest
    return sure_poison(margins, labels, known_clean, Criterion(share, chance, **chosen))


@st.composite
def small_sets(draw):
    """Few labels, margins with ties, huge ones among them."""
    example = st.tuples(
        st.one_of(st.integers(-12, 12).map(lambda n: n / 4), st.sampled_from([-WORST, WORST])),
        st.integers(0, 3),
        st.booleans(),
    )
    rows = draw(st.lists(example, max_size=20))
    label = draw(st.integers(0, 3))
    rows += [(-4.0, label, False)] * draw(st.integers(0, 15))
    rows += [(2.0, other % 4, True) for other in range(draw(st.integers(0, 12)))]
    rows = draw(st.permutations(rows))
    margins, labels, known = ([row[part] for row in rows] for part in range(3))
    return (
        torch.tensor(margins, dtype=torch.float32),
        torch.tensor(labels, dtype=torch.int64),
        torch.tensor(known, dtype=torch.bool),
    )


settings = st.fixed_dictionaries(
    {
        "share": st.sampled_from([DEFAULT["share"], 0.05, 0.1, 0.2, 0.25, 0.5, 0.9]),
        "chance": st.sampled_from([DEFAULT["chance"], 0.0, 1e-6, 1e-3, 0.0123, 0.0456, 0.321]),
    }
)


@given(small_sets(), settings)
def test_against_loops(case, chosen):
    found = sure(*case, **chosen)
    expected = sets.slow_sure_poison(
        *(part.tolist() for part in case), **chosen, fewest=FEWEST, prior=10
    )
    assert found.dtype == torch.bool
    assert found.tolist() == expected


def test_the_loops_find_something_or_nothing_about_as_often():
    """What is compared above is not the empty answer every time."""
    seen = []

    @given(small_sets(), settings)
    def look(case, chosen):
        seen.append(bool(sure(*case, **chosen).any()))

    look()
    assert 0.1 < sum(seen) / len(seen) < 0.9


@given(small_sets())
def test_suspicion_against_loops(case):
    margins, _, known = case
    scores = suspicion(margins, known)
    assert scores.tolist() == pytest.approx(
        sets.slow_suspicion(margins.tolist(), known.tolist()), abs=1e-6
    )
    assert ((scores >= 0) & (scores <= 1)).all()


@given(small_sets(), settings, st.randoms(use_true_random=False))
def test_what_is_known_to_be_clean_is_never_sure_and_order_does_not_matter(case, chosen, random):
    margins, labels, known = case
    found = sure(*case, **chosen)
    assert not (found & known).any()
    order = list(range(len(margins)))
    random.shuffle(order)
    shuffled = sure(margins[order], labels[order], known[order], **chosen)
    assert torch.equal(shuffled, found[order])
    renamed = sure(margins, 7 - labels, known, **chosen)
    assert torch.equal(renamed, found)


@given(small_sets(), settings)
def test_who_is_sure_is_more_suspect_than_all_but_a_share_of_the_known(case, chosen):
    margins, _, known = case
    found = sure(*case, **chosen)
    if found.any():
        assert suspicion(margins, known)[found].min() >= 1 - chosen["share"] - 1 / known.sum()


def purity(found, poisoned):
    """Shares of the poison that is found, and of the found that is poison."""
    both = int((found & poisoned).sum())
    return both / int(poisoned.sum()), both / max(1, int(found.sum()))


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("count", [20, 30, 100])
def test_poison_piled_under_one_label_is_found(seed, count):
    *case, poisoned = sets.drawn_set(seed, {3: count})
    found = sure(*case)
    complete, pure = purity(found, poisoned)
    assert not (found & case[2]).any()
    assert complete == 1
    assert pure >= 0.7
    if count >= 30:
        assert pure >= 0.8


def test_where_there_is_no_poison_none_is_found():
    found = [sure(*sets.drawn_set(seed, {})[:3]) for seed in range(40)]
    assert sum(bool(marked.any()) for marked in found) <= 2


@pytest.mark.parametrize("seed", range(5))
def test_two_backdoors_are_found(seed):
    *case, poisoned = sets.drawn_set(seed, {3: 30, 7: 20})
    found = sure(*case)
    assert purity(found, poisoned)[0] == 1
    assert set(case[1][found].tolist()) == {3, 7}


@pytest.mark.parametrize("seed", range(5))
def test_a_pile_of_less_than_half_the_greatest_is_not_sure(seed):
    _, labels, *_ = case = sets.drawn_set(seed, {3: 100, 7: 25})[:3]
    assert set(labels[sure(*case)].tolist()) == {3}
    _, labels, *_ = alone = sets.drawn_set(seed, {7: 25})[:3]
    assert set(labels[sure(*alone)].tolist()) == {7}


def test_which_pile_is_too_small_is_a_choice():
    _, labels, *_ = case = sets.drawn_set(0, {3: 100, 7: 40})[:3]
    assert set(labels[sure(*case)].tolist()) == {3}
    assert set(labels[sure(*case, pile_share=0.3)].tolist()) == {3, 7}


def test_what_a_label_has_to_prove_is_a_choice():
    """With a large prior, a label's own known clean examples hardly count."""
    margins, labels, known, _ = sets.drawn_set(0, {}, clean=600, known=200)
    hard = (labels == 4) & (torch.arange(600) % 4 > 0)
    margins = torch.where(hard, margins - 10, margins)
    assert not sure(margins, labels, known).any()
    assert set(labels[sure(margins, labels, known, prior=10_000)].tolist()) == {4}


@pytest.mark.parametrize("seed", range(5))
def test_hard_examples_spread_over_the_labels_are_not_sure(seed):
    """As many as a backdoor has, and their labels look as absurd."""
    margins, labels, known, _ = sets.drawn_set(seed, {}, hard=30)
    assert int((margins < 0).sum()) == 30
    assert not sure(margins, labels, known).any()
    *case, poisoned = sets.drawn_set(seed, {3: 30}, hard=30)
    found = sure(*case)
    assert purity(found, poisoned)[0] == 1
    assert set(case[1][found].tolist()) == {3}


@pytest.mark.parametrize("seed", range(5))
def test_a_label_that_is_hard_among_the_known_too_is_not_sure(seed):
    margins, labels, known, _ = sets.drawn_set(seed, {}, clean=600, known=200)
    hard = (labels == 4) & (torch.arange(600) % 4 > 0)
    margins = torch.where(hard, margins - 10, margins)
    assert not sure(margins, labels, known).any()
    unseen = torch.where(hard & known, margins + 10, margins)
    assert set(labels[sure(unseen, labels, known)].tolist()) == {4}


@pytest.mark.parametrize("known", range(FEWEST + 1))
def test_with_few_known_clean_examples_nothing_is_sure(known):
    *case, poisoned = sets.drawn_set(0, {3: 60}, known=known)
    found = sure(*case)
    assert bool(found.any()) == (known >= FEWEST)
    if known == 0:
        assert set(suspicion(case[0], case[2]).tolist()) == {0.5}
    else:
        assert (suspicion(case[0], case[2])[poisoned] == 1).all()


def test_all_known_clean():
    margins, labels, _, _ = sets.drawn_set(0, {3: 30})
    everyone = torch.ones_like(labels, dtype=torch.bool)
    assert not sure(margins, labels, everyone).any()


@pytest.mark.parametrize("known", [True, False])
def test_one_example(known):
    marked = torch.tensor([known])
    assert sure(torch.tensor([-9.0]), torch.tensor([0]), marked).tolist() == [False]
    assert suspicion(torch.tensor([-9.0]), marked).tolist() == [0 if known else 0.5]


def test_no_example():
    nothing = torch.zeros(0)
    assert len(sure(nothing, nothing.long(), nothing.bool())) == 0
    assert len(suspicion(nothing, nothing.bool())) == 0


def test_a_first_model_to_which_all_is_alike_is_sure_of_nothing():
    _, labels, known, _ = sets.drawn_set(0, {3: 30})
    assert not sure(torch.full((330,), -2.5), labels, known).any()


@pytest.mark.parametrize("size", [WORST, 1e38])
def test_huge_margins(size):
    margins, labels, known, poisoned = sets.drawn_set(0, {3: 30})
    margins = size * margins.sign()
    found = sure(margins, labels, known)
    assert torch.equal(found, poisoned)
    scores = suspicion(margins, known)
    assert scores.isfinite().all()
    assert (scores[poisoned] == 1).all()
    part = SurePoison.of(Examples(torch.zeros(330, 1), labels), found, margins)
    assert part.reference == 0


def made(places, params=None):
    """The toy's examples at these places as sure poison of a first model."""
    owned = sets.owned()
    z = toys.predict(toys.released() if params is None else params, owned.examples.inputs)
    marked = torch.zeros(len(owned), dtype=torch.bool)
    marked[places] = True
    part = SurePoison.of(owned.examples, marked, margin(z, owned.examples.labels))
    return part, owned.examples


@pytest.mark.parametrize("places", [[], [3], sets.POISONED, list(range(120))])
def test_what_a_model_knows_against_loops(places):
    part, examples = made(places)
    assert len(part) == len(places)
    expected = sets.success(toys.predict, toys.released(), examples, places)
    assert part.reference == pytest.approx(expected, abs=1e-6)
    for params in (toys.released(), toys.released() + toys.attacker(0)):
        known = part.known(toys.server(), params)
        expected = sets.success(toys.predict, params, examples, places)
        assert known == pytest.approx(expected, abs=1e-6)
    round = toys.attacked_round(3, 1)
    by_clients = part.known_by(toys.server(), round)
    assert by_clients.dtype == torch.float64
    assert by_clients.tolist() == [
        part.known(toys.server(), round.global_params + update) for update in round.updates
    ]


def test_many_examples_are_run_in_parts_and_known_the_same(monkeypatch):
    asked, part = [], made(range(120))[0]

    def predict(params, inputs):
        asked.append(len(inputs))
        return toys.predict(params, inputs)

    whole = part.known(Server(predict), toys.released())
    monkeypatch.setattr(client_losses, "AT_ONCE", 25)
    monkeypatch.setattr(torch, "get_num_threads", lambda: 2)
    assert part.known(Server(predict), toys.released()) == pytest.approx(whole, abs=1e-9)
    assert asked == [120, 40, 40, 40]


def test_the_reference_is_the_first_models_and_not_the_present_ones():
    part, examples = made(sets.POISONED)
    fallen, _ = made(sets.POISONED, toys.released() + toys.attacker(0))
    assert part.reference < 0.1
    assert fallen.reference > 0.9
    odds = margin(toys.predict(toys.released(), examples.inputs), examples.labels)[90:]
    expected = oracles.mean([1 / (1 + math.exp(-log_odds)) for log_odds in odds.tolist()])
    assert part.reference == pytest.approx(expected, abs=1e-6)


def test_it_asks_the_model_about_the_sure_examples_only_and_not_at_all_where_none_is():
    asked = []

    def predict(params, inputs):
        asked.append(len(inputs))
        return toys.predict(params, inputs)

    for places in (sets.POISONED, []):
        made(places)[0].known(Server(predict), toys.released())
    assert asked == [30]


def test_a_model_that_is_not_finite_knows_no_number():
    broken = Server(lambda params, inputs: toys.predict(params, inputs) * torch.nan)
    assert math.isnan(made(sets.POISONED)[0].known(broken, toys.released()))
    huge = Server(lambda params, inputs: toys.predict(params, inputs) * 1e8)
    assert math.isnan(made(sets.POISONED)[0].known(huge, toys.released()))
