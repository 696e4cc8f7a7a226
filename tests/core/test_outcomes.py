import math

import pytest
import torch
from tests.strategies import as_round

from datadefense import Aggregate, Gate, Layout, Server, Submission, create, defend
from datadefense.core.gate import Rejection
from datadefense.core.outcomes import Verdict, outcomes_of
from datadefense.core.reasons import Reason, in_words

ROWS = [[0.0, 1.0], [0.1, 1.0], [0.0, 1.1], [0.1, 1.1], [30.0, 40.0], [0.0, 0.9], [0.1, 0.9]]
COUNTED, REDUCED, EXCLUDED, VOTED = (
    Verdict.COUNTED,
    Verdict.REDUCED,
    Verdict.EXCLUDED,
    Verdict.VOTED,
)


def told(name, rows=ROWS, **settings):
    round = as_round(torch.tensor(rows))
    defense = create(name, settings)
    state = defense.init(Server(), round.global_params)
    return outcomes_of(defense.aggregate(state, round, Server()), round, ())


def of(weights, reasons=(), evidence=None, counts=None):
    clients = len(weights if weights is not None else reasons)
    round = as_round(torch.zeros(clients, 1), counts=counts)
    columns = {name: torch.tensor(column) for name, column in (evidence or {}).items()}
    given = None if weights is None else torch.tensor(weights)
    return outcomes_of(Aggregate(torch.zeros(1), None, given, columns, {}, reasons), round, ())


@pytest.mark.parametrize(
    ("name", "usual", "outlier"),
    [
        ("fedavg", COUNTED, COUNTED),
        ("median", VOTED, VOTED),
        ("multi-krum", COUNTED, EXCLUDED),
        ("bulyan", VOTED, EXCLUDED),
        ("ndc", COUNTED, REDUCED),
        ("sparsefed", COUNTED, REDUCED),
        ("weak-dp", COUNTED, REDUCED),
        ("rfa", COUNTED, REDUCED),
    ],
)
def test_verdicts(name, usual, outlier):
    settings = {"norm_bound": 2.0} if name in {"ndc", "sparsefed", "weak-dp"} else {}
    found = told(name, **settings)
    others = [one.verdict for one in (*found[:4], *found[5:])]
    assert found[4].verdict is outlier
    assert others.count(usual) >= len(others) - (name == "bulyan")


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("krum", "krum_score"),
        ("multi-krum", "krum_score"),
        ("bulyan", "repeated_krum"),
        ("ndc", "norm"),
        ("ndc-adaptive", "norm"),
        ("sparsefed", "norm"),
        ("weak-dp", "norm"),
        ("rfa", "distance"),
    ],
)
def test_the_outliers_reason_has_its_number_and_what_it_is_held_against(name, code):
    outlier = told(name)[4]
    assert outlier.reason.code == code
    assert outlier.reason.value > outlier.reason.limit > 0
    if code != "norm":
        assert outlier.reason.value == list(outlier.evidence.values())[-1]
    else:
        assert outlier.reason.value == 50


def test_the_rejected_come_last_with_the_gates_words():
    round = as_round(torch.tensor(ROWS))
    result = create("fedavg").aggregate(None, round, Server())
    found = outcomes_of(result, round, [Rejection("x", "too late"), Rejection(0, "twice")])
    assert [one.client for one in found] == [*round.client_ids, "x", 0]
    assert [one.verdict for one in found[-2:]] == [Verdict.REJECTED] * 2
    assert [in_words(one.reason) for one in found[-2:]] == ["too late", "twice"]
    assert outcomes_of(result, None, [Rejection("x", "too late")]) == found[-2:-1]


def test_weights_examples_and_evidence_are_told():
    found = of([0.25, 0.75], evidence={"loss": [1 / 3, math.inf]}, counts=[3, 9])
    assert [one.weight for one in found] == [0.25, 0.75]
    assert [one.num_examples for one in found] == [3, 9]
    assert [dict(one.evidence) for one in found] == [{"loss": 0.333333}, {}]


def test_many_examples_are_no_fault():
    round = as_round(torch.randn(6, 3), counts=[500, 10, 10, 10, 10, 10])
    for name, verdicts in (("multi-krum", {COUNTED, EXCLUDED}), ("fedavg", {COUNTED})):
        result = create(name).aggregate(None, round, Server())
        assert {one.verdict for one in outcomes_of(result, round, ())} == verdicts


def test_a_rule_that_gives_reasons_decides_who_is_reduced():
    reason = Reason("trust", 0.1, 0.5)
    low, none, high = of([0.01, 0.0, 0.99], [None, reason, reason])
    assert (low.verdict, low.reason) == (COUNTED, None)
    assert (none.verdict, none.reason) == (EXCLUDED, reason)
    assert (high.verdict, high.reason) == (REDUCED, reason)


def test_a_rule_without_weights_leaves_out_whom_it_gives_a_reason():
    assert [one.verdict for one in of(None, [None, Reason("far")])] == [VOTED, EXCLUDED]


def test_a_rule_that_gives_no_reasons_gets_the_evidence_that_sets_a_client_apart():
    evidence = {
        "same": [1.0] * 5,
        "score": [5.0, 6.0, 7.0, 6.5, 950.0],
        "wide": [0.0, 100.0, 200.0, 300.0, 400.0],
    }
    *_, out = of([0.25, 0.25, 0.25, 0.25, 0.0], evidence=evidence)
    assert out.reason == Reason("score", 950.0, 6.5)
    assert in_words(out.reason) == "score 950 against 6.5"
    *_, out = of([0.5, 0.5, 0.0])
    assert out.reason == Reason("no_weight")
    *_, out = of([0.5, 0.5, 0.0], evidence={"odd": [1.0, 2.0, math.nan], "same": [1.0] * 3})
    assert out.reason == Reason("no_weight")


def test_less_than_half_of_the_middle_weight_is_reduced_where_no_reasons_are_given():
    weights = [0.3, 0.3, 0.3, 0.1]
    assert [one.verdict for one in of(weights)] == [COUNTED] * 3 + [REDUCED]
    found = of(weights, counts=[30, 30, 30, 10])
    assert [one.verdict for one in found] == [COUNTED] * 4, "its share of the examples"


def test_nobody_counts():
    assert {one.reason for one in of([0.0, 0.0])} == {Reason("model_kept")}


def test_weights_that_are_no_numbers_are_left_out():
    odd, fine = of([math.nan, 1.0])
    assert (odd.weight, odd.verdict) == (None, COUNTED)
    assert fine.weight == 1


def test_reasons_are_fit_to_be_stored():
    (odd, _) = of([0.0, 1.0], [Reason("a\n", math.inf, 1 / 3, "\x1b"), None])
    assert odd.reason == Reason("a?", None, 0.333333, "?")


def test_another_number_of_reasons_is_an_error():
    with pytest.raises(ValueError, match="clients=2, reasons=1"):
        of([0.5, 0.5], [None])


def test_they_are_in_the_order_in_which_clients_sent():
    layout, start = Layout.of_state_dict({"w": torch.zeros(2)}), torch.zeros(2)
    good, bad = torch.ones(2), torch.full((2,), torch.nan)
    sent = [("x", bad), ("a", good), ("a", good), ("y", bad), ("b", good), ("z", bad)]
    gate = Gate(layout)
    matrix = torch.stack([update for _, update in sent])
    clients = [client for client, _ in sent]
    for admission in (
        gate.admit(1, start, [Submission(client, update, 1) for client, update in sent]),
        gate.screen(1, start, matrix, [1] * len(sent), clients),
    ):
        found = defend(create("fedavg"), None, admission, start, Server()).outcomes
        assert [one.client for one in found] == clients
        assert [one.verdict is Verdict.REJECTED for one in found] == [
            *(True, False, True),
            *(True, False, True),
        ]
    nobody = gate.admit(1, start, [Submission("x", bad, 1), Submission("y", bad, 1)])
    found = defend(create("fedavg"), None, nobody, start, Server()).outcomes
    assert [one.client for one in found] == ["x", "y"]
