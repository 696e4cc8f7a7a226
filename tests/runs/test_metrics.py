import json

import pytest
from tests.records import detector_of, record_of
from tests.simulation.tiny import tiny_federation

from datadefense.core.examples import Examples
from datadefense.report.page_data import page_data
from datadefense.report.reader import StoredRun
from datadefense.runs import metrics
from datadefense.runs.metrics import METRICS, NAMES, Metric, figures_of, scores_in_words
from datadefense.runs.round_lines import read_round, round_line
from datadefense.simulation import rounds, scores
from datadefense.simulation.pool import Pool
from datadefense.simulation.scores import SCORES, Score
from datadefense.studies.store import curves_of


def test_a_round_with_all_of_them():
    record = record_of(
        7,
        ["a", 1, 2],
        ["a", "b"],
        [0.25, 0.75, 0.0],
        rejected=[("b", "NaN")],
        ma_percent=90.0,
        asr_percent=2.0,
        seconds={"training": 1.5, "attack": 0.5, "defense": 0.25, "evaluation": 0.125},
    )
    expected = [90.0, 2.0, 3, 2, 0.25, 1, 1, 1.5, 0.5, 0.25, 0.125]
    assert figures_of(record) == dict(zip(NAMES, expected, strict=True))
    assert scores_in_words(record) == ["MA 90.0 %", "ASR 2.0 %"]


def test_what_a_round_does_not_have_is_left_out():
    record = record_of(1, [4])
    assert figures_of(record) == {"clients": 1, "attackers": 0, "rejected": 0}
    assert scores_in_words(record) == []


def test_a_metric_of_a_round_is_one_entry(monkeypatch):
    more = Metric("marked", lambda record: len(record.detector.marked) if record.detector else None)
    monkeypatch.setattr(metrics, "METRICS", (*METRICS, more))
    assert "marked" not in figures_of(record_of(1))
    assert figures_of(record_of(1, detector=detector_of([0.5, 0.9], [1])))["marked"] == 1


def halved(examples):
    return Examples(examples.inputs[:10], examples.labels[:10])


def test_a_score_is_one_entry(monkeypatch):
    """A score of somebody's own is measured, stored, in the curves and in a chart."""
    own = Score(
        "first_ten_share",
        "TEN",
        "Of the first ten",
        lambda federation: halved(federation.test),
        factor=1.0,
        unit="",
        range=(0.0, 1.0),
    )
    for module in (scores, rounds, metrics):
        monkeypatch.setattr(module, "SCORES", (*SCORES, own))
    monkeypatch.setattr("datadefense.report.page_data.SCORES", (*SCORES, own))
    federation = tiny_federation()
    with Pool(federation) as pool:
        found = rounds.evaluate(federation, pool, federation.start)
    assert found["first_ten_share"] in [tenth / 10 for tenth in range(11)]
    record = rounds.RoundRecord(1, attackers=[], scores=found)
    assert read_round(json.loads(round_line(record))) == record
    assert curves_of([record], frozenset())["first_ten_share"] == [
        (1, pytest.approx(found["first_ten_share"]))
    ]
    assert scores_in_words(record)[-1].startswith("TEN ")
    page = page_data([StoredRun("run", "", {}, [record], None, None, None, ())])
    assert [score["id"] for score in page["scores"]] == ["ten", "asr", "ma"]
    assert page["runs"][0]["scores"]["first_ten_share"] == [
        pytest.approx(found["first_ten_share"], rel=1e-3)
    ]
