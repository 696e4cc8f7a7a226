import pytest

from datadefense.report.client_data import client_data
from datadefense.report.detector_data import detector_data
from datadefense.report.page_data import events, theta
from datadefense.runs.record_fields import numbers, reasons, rejected
from datadefense.simulation.rounds import RoundRecord


def record(**report):
    return RoundRecord(1, [4, "b"], [], [0.5, 0.5], {"norm": [1.0, 2.0]}, report, 1.0, 1.0)


def test_what_has_the_known_form_is_taken():
    known = record(gamma=[0.1, 1], reasons=["far", ""], rejected=[{"client": 7, "reason": "NaN\n"}])
    assert numbers(known, "gamma") == [0.1, 1]
    assert reasons(known) == ["far", ""]
    assert rejected(known) == [("7", "NaN?")]


@pytest.mark.parametrize("odd", [3, "text", None, {"a": 1}, ["x"], [None], [[1]]])
def test_what_a_defense_calls_so_but_is_something_else_is_left_out(odd):
    strange = record(gamma=odd, marked=odd, theta=odd, reasons=odd, rejected=odd, held=odd)
    assert numbers(strange, "gamma") == []
    assert reasons(strange) == ["", ""]
    assert rejected(strange) == []
    assert detector_data([strange], None, 100, []) is None
    assert client_data([strange], 100)["rounds"] == [1]
    assert theta([strange]) == {}
    assert all(isinstance(text, str) for _, text in events([strange]))
