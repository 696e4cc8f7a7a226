import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.defenses.datadefense import sets

from datadefense.defenses.datadefense.hold import Held, Limits, hold

DIM = 3
HALVINGS = 5


def limits(known, most_left_out=0.5, halvings=HALVINGS):
    return Limits(known, most_left_out, halvings)


def old_of(weights, known=0.0):
    clients = len(weights)
    return Held(
        torch.full((DIM,), -7.0), torch.zeros(clients), torch.zeros(clients) > 0, 0.0, known
    )


def average(weights):
    """Clients' updates that no two sets of weights confuse."""
    rows = torch.arange(len(weights) * DIM, dtype=torch.float64).view(-1, DIM).sin()
    return weights @ rows


class Counted:
    """Any success at all: the answers in turn; the same model always gets the same."""

    def __init__(self, answers):
        self.answers, self.given = answers, {}

    def __call__(self, params):
        key = params.numpy().tobytes()
        return self.given.setdefault(key, self.answers[len(self.given) % len(self.answers)])


grid = st.integers(0, 16).map(lambda n: n / 8)


@st.composite
def clients(draw, fewest=0):
    count = draw(st.integers(max(1, fewest), 12))
    weights = draw(st.lists(grid, min_size=count, max_size=count))
    known_by = draw(st.lists(grid, min_size=count, max_size=count))
    return [torch.tensor(column, dtype=torch.float64) for column in (weights, known_by)]


@given(clients(), st.integers(0, 40))
def test_against_trying_one_by_one(case, tick):
    """Where leaving out who knows most can only help, bisection finds the first that will do."""
    weights, known_by = case
    limit = tick / 16 + 1e-3
    found = hold(
        lambda kept: kept,
        lambda params: float(params @ known_by),
        weights,
        known_by,
        limits=limits(limit),
        old=Held(weights * 0, weights * 0, weights > 0, 0.0, 0.0),
    )

    def knows(rest):
        return sum(weight * known for weight, known in zip(rest, known_by.tolist(), strict=True))

    rest, out, step = sets.slow_hold(weights.tolist(), known_by.tolist(), knows, limit, HALVINGS)
    assert found.step == step
    assert found.weights.tolist() == pytest.approx(rest, abs=1e-9)
    if out is not None:
        assert found.left_out.tolist() == out
        assert found.known == pytest.approx(knows(rest), abs=1e-9)


answers = st.lists(
    st.one_of(st.floats(0, 1), st.sampled_from([math.nan, math.inf, -math.inf, 0.5, 0.0, 1.0])),
    min_size=1,
    max_size=20,
)


@given(clients(), answers, st.floats(0, 1))
def test_the_laws_for_any_success_at_all(case, given_answers, limit):
    weights, known_by = case
    knows, old = Counted(given_answers), old_of(weights, known=0.25)
    found = hold(average, knows, weights, known_by, limits=limits(limit), old=old)
    counted = int((weights > 0).sum())
    if found is old:
        whole = knows.given.get(average(weights).numpy().tobytes())
        assert counted == 0 or not whole <= limit
        return
    assert found.known <= limit
    assert knows(found.params) == found.known
    assert torch.equal(found.params, average(found.weights))
    out = found.left_out
    assert (found.weights >= 0).all()
    assert (found.weights[out] == 0).all()
    assert torch.equal(found.weights[~out], found.step * weights[~out])
    assert found.step in {0.5**times for times in range(HALVINGS + 1)}
    assert 2 * int(out.sum()) <= counted
    assert (weights[out] > 0).all()
    kept = (weights > 0) & ~out
    if out.any():
        assert known_by[out].min() >= known_by[kept].max()
    if found.step < 1:
        assert int(out.sum()) == counted // 2


@given(clients(fewest=2), answers)
def test_it_looks_at_few_models(case, given_answers):
    """Two, and the steps of a bisection or the halvings."""
    weights, known_by = case
    calls = []

    def knows(params):
        calls.append(params)
        return given_answers[len(calls) % len(given_answers)]

    hold(average, knows, weights, known_by, limits=limits(0.3), old=old_of(weights))
    half = int((weights > 0).sum()) // 2
    assert len(calls) <= 2 + max(HALVINGS, math.ceil(math.log2(max(1, half))))


@given(clients(), st.floats(0, 1))
def test_nothing_is_changed_where_the_average_will_do(case, limit):
    weights, known_by = case
    old = old_of(weights)
    found = hold(average, lambda params: limit, weights, known_by, limits=limits(limit), old=old)
    if not (weights > 0).any():
        assert found is old
        return
    assert torch.equal(found.weights, weights)
    assert not found.left_out.any()
    assert found.step == 1


@given(clients(), st.sampled_from([math.nan, math.inf, 1.0]))
def test_where_nothing_will_do_the_old_model_stays(case, answer):
    weights, known_by = case
    old = old_of(weights)
    assert (
        hold(average, lambda params: answer, weights, known_by, limits=limits(0.9), old=old) is old
    )


@pytest.mark.parametrize("count", [1, 5])
def test_where_nobody_has_weight_the_old_model_stays_and_no_model_is_made(count):
    def never(_):
        raise AssertionError("a model was made or looked at")

    nobody = torch.zeros(count, dtype=torch.float64)
    old = old_of(nobody)
    assert hold(never, never, nobody, nobody + 1, limits=limits(1.0), old=old) is old


def test_not_a_number_is_too_much_whatever_the_limit():
    weights = torch.full((4,), 0.25, dtype=torch.float64)
    known_by = torch.tensor([0.1, 0.9, 0.2, 0.3], dtype=torch.float64)
    knows = Counted([math.nan, 0.2, math.nan])
    found = hold(average, knows, weights, known_by, limits=limits(math.inf), old=old_of(weights))
    assert found.left_out.tolist() == [False, True, False, True]
    assert found.weights.tolist() == [0.25, 0, 0.25, 0]


def test_a_single_client_is_shortened():
    client = torch.ones(1, dtype=torch.float64)
    found = hold(lambda kept: kept, float, client, client, limits=limits(0.3), old=old_of(client))
    assert (found.step, found.weights.tolist()) == (0.25, [0.25])
    assert not found.left_out.any()


def test_of_clients_that_know_the_same_the_first_are_left_out():
    weights = torch.tensor([0.0, 0.25, 0.25, 0.25, 0.25], dtype=torch.float64)
    alike = torch.full((5,), 0.4, dtype=torch.float64)
    knows = Counted([1.0, 0.0, 1.0])
    found = hold(average, knows, weights, alike, limits=limits(0.5), old=old_of(weights))
    assert found.left_out.tolist() == [False, True, True, False, False]


def test_a_client_of_which_nothing_is_known_goes_first():
    weights = torch.full((3,), 1 / 3, dtype=torch.float64)
    known_by = torch.tensor([0.9, math.nan, 0.1], dtype=torch.float64)
    found = hold(
        average, Counted([1.0, 0.0]), weights, known_by, limits=limits(0.5), old=old_of(weights)
    )
    assert found.left_out.tolist() == [False, True, False]


@pytest.mark.parametrize(("share", "most"), [(0.0, 0), (0.25, 2), (0.3, 3), (0.5, 5), (0.9, 9)])
def test_how_many_may_be_left_out_is_a_choice(share, most):
    """Of ten clients; the limit is never kept, so all tries are made."""
    weights = torch.full((10,), 0.1, dtype=torch.float64)
    counts = []

    def knows(params):
        counts.append(int((params == 0).sum()))
        return 1.0

    hold(
        lambda kept: kept,
        knows,
        weights,
        torch.linspace(0, 1, 10, dtype=torch.float64),
        limits=limits(0.5, share),
        old=old_of(weights),
    )
    assert max(counts) == most


@pytest.mark.parametrize("halvings", [0, 1, 3])
def test_how_often_a_step_is_halved_is_a_choice(halvings):
    client = torch.ones(1, dtype=torch.float64)
    old = old_of(client)
    just, below = 0.5**halvings, 0.5 ** (halvings + 1)
    found = hold(
        lambda kept: kept, float, client, client, limits=limits(just, 0.5, halvings), old=old
    )
    assert found.step == just
    found = hold(
        lambda kept: kept, float, client, client, limits=limits(below, 0.5, halvings), old=old
    )
    assert found is old
