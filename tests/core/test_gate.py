import json
import re

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datadefense import Gate, Layout, Server, Submission, create, defend
from datadefense.core.outcome_json import outcome_json
from datadefense.core.settings import SettingsError

LAYOUT = Layout.of_state_dict({"weight": torch.zeros(2, 2), "bias": torch.zeros(2)})
GLOBAL = torch.arange(6.0)


def good(client="a", count=10, value=1.0):
    return Submission(client, torch.full((6,), value), count)


def reason_of(submission, **settings):
    admission = Gate(LAYOUT, **settings).admit(1, GLOBAL, [submission])
    if admission.round is not None:
        return None
    (rejection,) = admission.rejected
    return rejection.reason


def test_those_who_pass_are_stacked_in_order():
    named = {"bias": np.full(2, 7, np.float32), "weight": torch.arange(4.0).view(2, 2)}
    admission = Gate(LAYOUT).admit(
        3, GLOBAL, [good("b", 5), Submission(9, named, np.int64(8)), good("a", 2, 3.0)]
    )
    assert admission.rejected == ()
    assert admission.round.index == 3
    assert admission.round.client_ids == ("b", 9, "a")
    assert admission.round.num_examples.tolist() == [5, 8, 2]
    assert admission.round.updates.tolist() == [[1.0] * 6, [0, 1, 2, 3, 7, 7], [3.0] * 6]


def test_models_become_updates():
    admission = Gate(LAYOUT, sends="models").admit(1, GLOBAL, [Submission("a", GLOBAL + 2, 1)])
    assert admission.round.updates.tolist() == [[2.0] * 6]


NAN, INF = float("nan"), float("inf")
BAD_CONTENT = {
    "nan": (torch.tensor([1, 2, NAN, 4, 5, 6.0]), "1 of 6 values are not finite"),
    "inf": (torch.tensor([INF, 2, -INF, 4, 5, 6.0]), "2 of 6 values are not finite"),
    "length": (torch.zeros(5), r"shape \(5,\), expected \(6,\)"),
    "matrix": (torch.zeros(2, 3), r"shape \(2, 3\), expected \(6,\)"),
    "empty": (torch.zeros(0), "shape"),
    "double": (torch.zeros(6).double(), "dtype torch.float64, expected torch.float32"),
    "half": (torch.zeros(6).half(), "dtype torch.float16"),
    "integers": (torch.zeros(6).long(), "dtype torch.int64"),
    "sparse": (torch.zeros(6).to_sparse(), "expected a numeric array"),
    "object array": (np.array([object()] * 6), "expected a numeric array"),
    "big endian": (np.zeros(6, ">f4"), "expected a numeric array"),
    "text": ("weights", "got str"),
    "bytes": (b"\x80\x04K\x01.", "got bytes"),
    "nothing": (None, "got NoneType"),
    "list": ([0.0] * 6, "got list"),
    "missing key": ({"weight": torch.zeros(2, 2)}, "missing tensors: 'bias'"),
    "extra key": (
        {"weight": torch.zeros(2, 2), "bias": torch.zeros(2), "w": torch.zeros(1)},
        "unknown tensors: 'w'",
    ),
    "odd key": ({1: torch.zeros(1)}, "not a named numeric array"),
    "odd value": ({"weight": "x", "bias": torch.zeros(2)}, "not a named numeric array"),
    "wrong shape": ({"weight": torch.zeros(4), "bias": torch.zeros(2)}, "weight has shape"),
    "transport": (OSError("connection lost"), "^connection lost$"),
}


@pytest.mark.parametrize(("content", "message"), BAD_CONTENT.values(), ids=BAD_CONTENT)
def test_bad_content(content, message, datadefense_log):
    gate = Gate(LAYOUT)
    admission = gate.admit(4, GLOBAL, [good("a"), Submission("evil", content, 10), good("b")])
    (rejection,) = admission.rejected
    assert rejection.client_id == "evil"
    assert re.search(message, rejection.reason)
    assert admission.round.client_ids == ("a", "b")
    assert admission.round.updates.isfinite().all()
    assert f"round 4: client 'evil' rejected: {rejection.reason}" in datadefense_log.text


@pytest.mark.parametrize(
    ("count", "message"),
    [
        (0, "must be in 1..1000000, got 0"),
        (-800, "got -800"),
        (10**9, "got 1000000000"),
        (10**30, "got a number of 100 bits"),
        (torch.tensor(True), "must be an integer"),
        (1.0, "must be an integer, got 1.0"),
        (NAN, "must be an integer, got nan"),
        ("10", "must be an integer, got '10'"),
        (True, "must be an integer, got True"),
        (None, "num_examples is missing"),
        ([1], "must be an integer"),
    ],
)
def test_bad_counts(count, message):
    assert message in reason_of(good(count=count))


def test_a_count_too_long_to_be_printed():
    assert reason_of(good(count=10**5000)).endswith("got a number of 16610 bits")


def test_bounds_of_the_count():
    assert reason_of(good(count=7), max_examples=7) is None
    assert "1..7" in reason_of(good(count=8), max_examples=7)
    with pytest.raises(SettingsError, match="max_examples must be >= 1, got 0"):
        Gate(LAYOUT, max_examples=0)
    with pytest.raises(SettingsError, match="max_examples must be <= 1099511627776, got a number"):
        Gate(LAYOUT, max_examples=10**5000)
    with pytest.raises(SettingsError, match="sends must be one of updates, models"):
        Gate(LAYOUT, sends="gradients")


def test_who_may_come():
    assert reason_of(good("stranger"), known_clients=frozenset({"a"})) == "unknown client"
    assert reason_of(good("a"), known_clients=frozenset({"a"})) is None
    for odd in (None, 1.5, True, ["a"], b"a"):
        assert "client id must be an integer or text" in reason_of(good(odd))


def test_only_the_first_update_of_a_client_counts():
    admission = Gate(LAYOUT).admit(1, GLOBAL, [good("a"), good("b"), good("a", value=9.0)])
    assert admission.round.client_ids == ("a", "b")
    assert admission.rejected[0].reason == "second update of this client in the round"


def test_a_rejected_client_may_try_again():
    bad = Submission("a", torch.full((6,), NAN), 1)
    admission = Gate(LAYOUT).admit(1, GLOBAL, [bad, good("a")])
    assert admission.round.client_ids == ("a",)
    assert len(admission.rejected) == 1


def test_more_than_expected_are_turned_away():
    admission = Gate(LAYOUT).admit(1, GLOBAL, iter([good("a"), good("b"), good("c")]), expected=2)
    assert admission.round.client_ids == ("a", "b")
    assert "round is full" in admission.rejected[0].reason
    bad = Submission("d", torch.zeros(2), 1)
    admission = Gate(LAYOUT).admit(1, GLOBAL, iter([good("a"), bad]), expected=1)
    assert "shape" in admission.rejected[0].reason


def test_an_id_cannot_forge_a_line_of_the_log(datadefense_log):
    Gate(LAYOUT, known_clients=frozenset()).admit(1, GLOBAL, [good("x\nround 1: all is well")])
    assert len(datadefense_log.text.strip().splitlines()) == 1


def test_nobody_left_keeps_model_and_state():
    defense = create("sparsefed")
    state = defense.init(Server(), GLOBAL)
    admission = Gate(LAYOUT).admit(1, GLOBAL, [good(count=0)])
    assert admission.round is None
    result = defend(defense, state, admission, GLOBAL, Server())
    assert torch.equal(result.params, GLOBAL)
    assert result.state is state
    assert result.report["held"] == "no update was admitted"
    assert [(one.client, one.verdict) for one in result.outcomes] == [("a", "rejected")]


def test_a_result_that_is_not_finite_is_not_released():
    top = torch.finfo(torch.float32).max
    admission = Gate(LAYOUT).admit(1, torch.full((6,), top), [good(value=top)])
    defense = create("fedavg")
    result = defend(defense, None, admission, torch.full((6,), top), Server())
    assert result.report["held"] == "the aggregate is not finite"
    assert (result.params == top).all()


def test_float64_values_beyond_squaring_are_turned_away():
    layout = Layout.of_state_dict({"w": torch.zeros(2).double()})
    tensors = [torch.tensor([1.0, value], dtype=torch.float64) for value in (1e3, 1e200)]
    rows = [Submission(j, tensor, 1) for j, tensor in enumerate(tensors)]
    admission = Gate(layout).admit(1, torch.zeros(2).double(), rows)
    assert admission.round.client_ids == (0,)
    assert admission.rejected[0].reason == "values must be within +-1e+100"


def test_odd_tensors_and_arrays():
    frozen = np.frombuffer(np.ones(6, np.float32).tobytes(), np.float32)
    assert reason_of(Submission(np.int64(4), frozen, 1)) is None
    nested = torch.nested.nested_tensor([torch.zeros(3)], layout=torch.jagged)
    for odd in (torch.zeros(6, device="meta"), nested, torch.zeros(6).to_sparse()):
        assert "numeric array" in reason_of(Submission("a", odd, 1))


def test_a_global_model_that_wants_gradients():
    start = GLOBAL.clone().requires_grad_()
    admission = Gate(LAYOUT, sends="models").admit(1, start, [Submission("a", GLOBAL + 1, 1)])
    assert not admission.round.updates.requires_grad
    assert not admission.round.global_params.requires_grad


def test_a_report_is_plain_json():
    admission = Gate(LAYOUT).admit(1, GLOBAL, [good(b"\x80"), good(None), good([1])])
    result = defend(create("median"), None, admission, GLOBAL, Server())
    assert json.loads(json.dumps(result.report)) == result.report
    told = [outcome_json(outcome) for outcome in result.outcomes]
    assert len(told) == 3
    assert json.loads(json.dumps(told)) == told


def test_a_variance_that_would_be_negative_stays_as_it_was():
    layout = Layout.of_state_dict(
        {"bn.weight": torch.ones(1), "bn.running_var": torch.ones(1)}, "aggregate"
    )
    start = torch.ones(2)
    admission = Gate(layout).admit(1, start, [Submission("a", torch.tensor([-3.0, -3.0]), 1)])
    result = defend(create("fedavg"), None, admission, start, Server())
    assert result.params.tolist() == [-2.0, 1.0]


def test_a_matrix_of_another_kind_is_the_callers_error():
    with pytest.raises(ValueError, match="the round is torch.float32 of dim=5"):
        Gate(LAYOUT).screen(1, torch.zeros(5), torch.zeros(1, 5), [1], [0])
    with pytest.raises(ValueError, match="clients=2, claims=1, client_ids=2"):
        Gate(LAYOUT).screen(1, GLOBAL, torch.zeros(2, 6), [1], [0, 1])


def test_huge_finite_values_are_admitted():
    assert reason_of(good(value=3e38)) is None


class TestScreen:
    def screen(self, updates, ids=None, claims=None, **settings):
        n = len(updates)
        gate = Gate(LAYOUT, **settings)
        return gate.screen(1, GLOBAL, updates, claims or [1] * n, ids or range(n))

    def test_a_clean_round_is_not_copied(self):
        updates = torch.ones(3, 6)
        admission = self.screen(updates, claims=[4, np.int64(5), 6])
        assert admission.round.updates is updates
        assert admission.round.num_examples.tolist() == [4, 5, 6]
        assert admission.rejected == ()

    def test_bad_rows_leave(self):
        updates = torch.arange(24.0).view(4, 6)
        updates[1, 3] = NAN
        admission = self.screen(updates, known_clients=frozenset({0, 1, 2}))
        assert admission.round.client_ids == (0, 2)
        assert torch.equal(admission.round.updates, updates[[0, 2]])
        assert [r.client_id for r in admission.rejected] == [1, 3]

    def test_duplicates_and_counts(self):
        claims = [1, 1, 10**7, 0, -5, 1e30, None, 10**30, 7]
        ids = ("a", "a", "b", "c", "d", "e", "f", "g", "h")
        admission = self.screen(torch.ones(9, 6), ids, claims)
        assert admission.round.client_ids == ("a", "h")
        assert admission.round.num_examples.tolist() == [1, 7]
        assert [r.client_id for r in admission.rejected] == ["a", "b", "c", "d", "e", "f", "g"]

    def test_nobody(self):
        assert self.screen(torch.full((2, 6), NAN)).round is None
        assert self.screen(torch.zeros(0, 6)).round is None


@given(
    st.one_of(
        st.none(),
        st.text(),
        st.binary(),
        st.floats(),
        st.lists(st.floats(), max_size=6),
        st.dictionaries(st.text(max_size=3), st.floats(), max_size=3),
    ),
    st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=5)),
    st.one_of(st.none(), st.integers(), st.floats(), st.text(max_size=5), st.binary(max_size=5)),
)
def test_garbage_never_raises(content, count, client):
    admission = Gate(LAYOUT).admit(1, GLOBAL, [Submission(client, content, count), good("ok")])
    assert admission.round.client_ids[-1] == "ok"
