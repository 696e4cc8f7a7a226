import json

import pytest

from datadefense.core.detector import DetectorRecord
from datadefense.core.outcome_json import (
    detector_json,
    outcome_json,
    read_detector,
    read_outcome,
)
from datadefense.core.outcomes import ClientOutcome, Verdict
from datadefense.core.reasons import Reason

OUTCOMES = [
    ClientOutcome(3, Verdict.COUNTED, 0.1, num_examples=60),
    ClientOutcome("a", Verdict.VOTED, evidence={"norm": 2.0}),
    ClientOutcome(2**64 - 1, Verdict.EXCLUDED, 0.0, {}, Reason("krum_score", 9.5, 6.0), 5),
    ClientOutcome("x", Verdict.REJECTED, reason=Reason("rejected", text="too late")),
]


@pytest.mark.parametrize("outcome", OUTCOMES, ids=lambda one: one.verdict)
def test_there_and_back(outcome):
    assert read_outcome(json.loads(json.dumps(outcome_json(outcome)))) == outcome


def test_what_there_is_none_of_takes_no_room():
    assert outcome_json(OUTCOMES[0]) == {
        "client": 3,
        "verdict": "counted",
        "weight": 0.1,
        "num_examples": 60,
    }
    assert outcome_json(OUTCOMES[3])["reason"] == {"code": "rejected", "text": "too late"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"verdict": "kept"}, "verdict must be one of counted, reduced, .* got 'kept'"),
        ({"weight": "much"}, "weight must be a number or null, got 'much'"),
        ({"evidence": {"norm": "x"}}, "what is in evidence must be a number"),
        ({"reason": {"value": 1}}, "it has no code"),
        ({"reason": 3}, "reason must be an object or null"),
        ({"other": 3}, "there is no 'other'"),
        ({"client": []}, "client must be"),
    ],
)
def test_what_is_no_outcome_is_said(change, message):
    with pytest.raises(ValueError, match=message):
        read_outcome(outcome_json(OUTCOMES[0]) | change)
    with pytest.raises(ValueError, match="must be an object"):
        read_outcome([])


def test_a_detector_there_and_back():
    record = DetectorRecord({"a": 0.5, "b": None}, ("a",))
    assert read_detector(json.loads(json.dumps(detector_json(record)))) == record
    with pytest.raises(ValueError, match="it has no marked"):
        read_detector({"suspicion": {}})
