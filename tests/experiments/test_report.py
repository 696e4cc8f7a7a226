import xml.etree.ElementTree as ET
from dataclasses import replace

import pytest
from tests.experiments.summaries import SUMMARY

from datadefense.experiments.experiment import Experiment
from datadefense.experiments.report import curves, render, verdict
from datadefense.simulation.rounds import RoundRecord

RECORDS = [
    RoundRecord(i, [1, 2], ["attacker"] if i == 2 else [], None, {}, {}, 90.0 + i, 10.0 * i, {})
    for i in (1, 2, 3)
]


def test_the_page_says_and_shows_what_happened():
    page = render(Experiment(), SUMMARY, RECORDS)
    assert "The backdoor got in: 80.0 % of unseen poisoned examples" in page
    assert "pgd against median" in page
    assert "http" not in page
    assert "clients_per_round = 10" in page


def test_the_curves_go_through_the_rounds():
    tree = ET.fromstring(curves(RECORDS, 1.0))
    lines = {line.get("class"): line.get("points").split() for line in tree.iter("polyline")}
    assert len(lines["ma"]) == len(lines["asr"]) == 3
    heights = [float(point.split(",")[1]) for point in lines["asr"]]
    assert heights[0] > heights[1] > heights[2]
    assert len([mark for mark in tree.iter("path") if mark.get("class") == "attack"]) == 1
    ET.fromstring(curves([], 0.0))


@pytest.mark.parametrize(
    ("excess", "words"), [(1.0, "was kept out"), (20.0, "got in partly"), (90.0, "got in:")]
)
def test_verdicts(excess, words):
    assert words in verdict(replace(SUMMARY, excess_asr_percent=excess))
    assert "Nobody attacked" in verdict(replace(SUMMARY, attack="none"))


def test_foreign_text_is_escaped():
    page = render(Experiment(), replace(SUMMARY, defense="<script>x</script>"), RECORDS)
    assert "<script>" not in page
