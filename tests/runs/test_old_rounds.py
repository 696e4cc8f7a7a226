"""Folders of version 0.1 are read as if they were of today."""

import pytest

from datadefense.core.outcomes import Verdict
from datadefense.core.reasons import in_words
from datadefense.runs.round_lines import read_round

OLD = {
    "round": 4,
    "clients": [26, "bad", 3],
    "attackers": ["bad"],
    "weights": [0.5, 0.0, 0.25],
    "evidence": {
        "clean_loss": [0.9, 1.1, 0.4],
        "learned_poison": [0.0, 0.93646, 0.0],
        "moved_far": [0.0, 0.0, None],
    },
    "report": {
        "clients": 3,
        "rejected": [{"client": 9, "reason": "3 values are not finite"}],
        "gamma": [0.1, 0.9],
        "marked": [1],
        "theta": [1.5, 0.2],
        "reasons": ["", "learned_poison 0.936", "farthest from the others"],
        "step": 1.0,
    },
    "ma_percent": 90.0,
    "asr_percent": None,
    "seconds": {"training": 1.0},
    "attack": {},
}


def changed(**report):
    return OLD | {"report": OLD["report"] | report}


def test_a_round_of_old():
    record = read_round(OLD, ["a", "b"])
    assert [(one.client, one.verdict, one.weight) for one in record.outcomes] == [
        (26, Verdict.COUNTED, 0.5),
        ("bad", Verdict.EXCLUDED, 0.0),
        (3, Verdict.REDUCED, 0.25),
        (9, Verdict.REJECTED, None),
    ]
    told = ["" if one.reason is None else in_words(one.reason) for one in record.outcomes]
    assert told == [
        "",
        "learned poison 0.936",
        "farthest from the others",
        "3 values are not finite",
    ]
    assert record.outcomes[1].reason.code == "learned_poison"
    assert record.outcomes[2].evidence == {"clean_loss": 0.4, "learned_poison": 0.0}
    assert record.clients == OLD["clients"]
    assert record.weights == OLD["weights"]
    assert record.scores == {"ma_percent": 90.0}
    assert record.report == {"step": 1.0}
    assert record.theta == {"learned_poison": 1.5, "moved_far": 0.2}
    assert record.detector.suspicion == {"a": 0.1, "b": 0.9}
    assert record.detector.marked == ("b",)


def test_examples_that_are_not_known_are_called_by_their_places():
    for examples in ((), ["a", "b", "c"]):
        assert read_round(OLD, examples).detector.marked == ("1",)


@pytest.mark.parametrize(
    ("chosen", "verdicts"),
    [({}, ["voted"] * 3), ({"chosen": [1.0, 0.0, 1.0]}, ["voted", "excluded", "voted"])],
)
def test_rules_without_weights(chosen, verdicts):
    old = changed(reasons=[]) | {"weights": None, "evidence": chosen}
    assert [one.verdict for one in read_round(old).outcomes[:3]] == verdicts
    assert read_round(old).weights is None


@pytest.mark.parametrize("odd", [3, "text", None, {"a": 1}, ["x"], [None], [[1]]])
def test_what_a_defense_called_so_but_is_something_else_is_left_out(odd):
    record = read_round(changed(gamma=odd, marked=odd, theta=odd, reasons=odd, rejected=odd))
    assert record.detector is None
    assert record.theta == {}
    assert len(record.outcomes) == 3
    assert record.outcomes[2].reason is None


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weights": [0.5]}, "'weights' has 1 values, expected one for each of 3 clients"),
        ({"weights": ["x"] * 3}, "what is in weights must be a number or null, got 'x'"),
        ({"evidence": {"norm": []}}, "'norm' has 0 values"),
        ({"clients": 3}, "clients must be a list"),
    ],
)
def test_what_is_no_round_is_said(change, message):
    with pytest.raises(ValueError, match=message):
        read_round(OLD | change)
