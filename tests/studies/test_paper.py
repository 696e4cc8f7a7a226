"""What the paper reports, and the studies that it is shown beside."""

import pytest

from datadefense.defenses import DEFENSES
from datadefense.studies.paper import published
from datadefense.studies.paper_studies import PAPER, SIX
from datadefense.studies.studies import STUDIES

TABLES = (
    "table1",
    "non-iid",
    "defense-size",
    "sensitivity",
    "robustness",
    "participants",
    "clean-fraction",
    "poison-fraction",
)


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_every_number_of_the_paper_has_a_point(name, scale):
    paper = published(name)
    points = {point.labels for point in STUDIES[name].points(scale)}
    assert paper.source.startswith("Table")
    assert set(paper.figures) <= points
    assert all(0 <= figure <= 100 for pair in paper.figures.values() for figure in pair)


def test_table_1_is_whole():
    """Eleven defenses on six setups; two numbers read off the paper by eye."""
    figures = published("table1").figures
    assert len(figures) == 66
    assert figures["cifar10-southwest", "datadefense-learned"] == (84.49, 15.30)
    assert figures["sentiment-yl", "krum"] == (79.70, 38.33)
    assert {setup for setup, _ in figures} == set(SIX)
    assert {defense for _, defense in figures} <= set(DEFENSES)


def test_of_figures_there_are_words_and_their_numbers():
    assert "below 20 %" in published("curves-southwest").says
    assert "below 5 %" in published("curves-trigger").says
    assert "71 of 100" in published("detector").says
    assert "11 of 100" in published("detector").says
    assert "100 %" in published("halting").says
    assert published("importance").says
    assert not any(published(name).says for name in TABLES)


def test_studies_that_the_paper_has_no_numbers_for():
    assert published("targets") is None
    assert published("nothing of the sort") is None


def test_the_paper_is_all_there():
    assert {study.name for study in PAPER} == {
        *TABLES,
        "curves-southwest",
        "curves-trigger",
        "detector",
        "importance",
        "halting",
        "paper-size",
    }


def test_at_cpu_scale_nothing_needs_ardis():
    for point in STUDIES["table1"].points("cpu"):
        if point.labels[0] == "emnist-ardis":
            assert (point.experiment.task.dataset, point.experiment.task.sevens) == ("mnist", "uci")
    for point in STUDIES["table1"].points("paper"):
        assert getattr(point.experiment.task, "sevens", "ardis") == "ardis"


def test_halting_is_at_a_fifteenth_of_the_rounds():
    halted = [
        point.experiment.defense.halt_after
        for scale in ("cpu", "paper")
        for point in STUDIES["halting"].points(scale)
        if point.experiment.defense.halt_after is not None
    ]
    assert halted == [2, 2, 100, 100]
