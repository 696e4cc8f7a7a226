import json

import pytest
from tests.records import detector_of, record_of
from tests.report.synthetic import Size, records_of

from datadefense.core.reasons import Reason
from datadefense.runs.round_lines import read_round, round_line

FULL = record_of(
    3,
    [7, "bad"],
    ["bad"],
    [1.0, 0.0],
    evidence={"score": [1.5, 950.0]},
    reasons=[None, Reason("krum_score", 950.0, 1.5)],
    rejected=[("late", "too late")],
    ma_percent=90.0,
    asr_percent=1.0,
    report={"step": 1.0, "odd": None},
    detector=detector_of([0.5, None], [0]),
    theta={"score": 0.25, "other": None},
    seconds={"training": 1.0},
    attack={"evasion_budget": 2.0},
)


@pytest.mark.parametrize(
    "record", [FULL, record_of(1, report={"held": "nobody"}), *records_of(Size(rounds=2))]
)
def test_there_and_back(record):
    line = round_line(record)
    assert line.endswith("}\n")
    assert read_round(json.loads(line)) == record


def test_what_there_is_none_of_takes_no_room():
    assert set(json.loads(round_line(record_of(1, [4], [], [1.0])))) == {
        *("round", "clients", "attackers", "scores", "report", "seconds")
    }


def test_a_client_is_one_object():
    (first, bad, late) = json.loads(round_line(FULL))["clients"]
    assert first == {"client": 7, "verdict": "counted", "weight": 1.0, "evidence": {"score": 1.5}}
    assert bad["reason"] == {"code": "krum_score", "value": 950.0, "limit": 1.5}
    assert late == {
        "client": "late",
        "verdict": "rejected",
        "reason": {"code": "rejected", "text": "too late"},
    }
