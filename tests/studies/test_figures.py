"""Figures: what is drawn is what the cells hold."""

from dataclasses import replace

import pytest
from tests.runs.summaries import SUMMARY

from datadefense.runs.config import Experiment
from datadefense.runs.configure import configure
from datadefense.studies.store import Result
from datadefense.studies.studies import STUDIES
from datadefense.studies.study import Cell, Point, Study

pytest.importorskip("matplotlib")
from datadefense.studies import figures


def cell(labels, *, curves=(), **changed):
    """A cell whose seeds have the given curves."""
    runs = tuple(
        (Result(f"{seed}", {}, replace(SUMMARY, **changed), one), None)
        for seed, one in enumerate(curves or [{}])
    )
    return Cell(Point(labels, Experiment()), runs)


def curves_in(panel):
    """Points of the panel's lines, without the marks of attacked rounds."""
    return [line.get_xydata().tolist() for line in panel.get_lines() if line.get_marker() != "^"]


def test_curves_are_means_over_the_seeds_that_have_the_round():
    one = {"asr_percent": [[1, 10.0], [2, 20.0]], "ma_percent": [[1, 90.0]]}
    two = {"asr_percent": [[1, 30.0]], "ma_percent": [[1, 80.0]]}
    figure = figures.BY_ROUND["by-round"]([cell(("pgd", "fedavg"), curves=[one, two])])
    (top, bottom) = figure.axes
    assert curves_in(bottom) == [[[1, 20], [2, 20]]]
    assert curves_in(top) == [[[1, 85]]]
    (shade,) = bottom.collections
    assert shade.get_datalim(bottom.transData).intervaly.tolist() == [10, 30], "of the seeds"
    assert bottom.get_legend().get_texts()[0].get_text() == "fedavg"


def test_a_panel_for_each_first_label():
    curve = [{"asr_percent": [[1, 1.0]]}]
    cells = [cell((attack, "x"), curves=curve) for attack in ("pgd", "none", "pgd")]
    panels = figures.BY_ROUND["by-round"](cells).axes
    assert [panel.get_title(loc="left") for panel in panels] == [
        "MA, pgd",
        "MA, none",
        "ASR, pgd",
        "ASR, none",
    ]
    assert len(curves_in(panels[2])) == 2


def test_attacked_rounds_are_marked():
    one = cell(("pgd", "x"), curves=[{"asr_percent": [[1, 1.0]]}])
    one = replace(
        one,
        point=Point(
            one.point.labels, configure("digits-edge", "cpu", {"rounds": "12", "period": "5"})
        ),
    )
    for panel in figures.BY_ROUND["by-round"]([one]).axes:
        (marks,) = (line for line in panel.get_lines() if line.get_marker() == "^")
        assert marks.get_xdata().tolist() == [1, 6, 11]


def test_a_run_without_curves_is_not_drawn(tmp_path):
    study = Study("s", "?", ("attack", "defense"), lambda _: [], "by-round")
    bare = cell(("pgd", "fedavg"))
    assert not figures.draw(study, [bare], tmp_path / "s.png")
    assert not (tmp_path / "s.png").exists()
    assert figures.draw(
        study, [bare, cell(("pgd", "x"), curves=[{"asr_percent": [[1, 1.0]]}])], tmp_path / "s.png"
    )


def test_hits_and_gaps():
    curves = {"hits_percent": [[1, 50.0], [2, 100.0]]}
    curves |= {f"gap_{end}": [[1, value]] for end, value in (("min", -1), ("mean", 0), ("max", 1))}
    cells = [cell(("cifar10-trigger",), curves=[curves])]
    (hits,) = figures.BY_ROUND["hits"](cells).axes
    assert hits.get_lines()[0].get_ydata().tolist() == [50, 100]
    (gaps,) = figures.BY_ROUND["gaps"](cells).axes
    assert [float(line.get_ydata()[0]) for line in gaps.get_lines()[:3]] == [1, 0, -1]


def test_gaps_fill_rows_of_two_panels():
    cells = [cell((name,), curves=[{"gap_mean": [[1, 0.5]]}]) for name in "abc"]
    panels = figures.BY_ROUND["gaps"](cells).axes
    assert [panel.get_title(loc="left") for panel in panels] == ["a", "b", "c"]


def test_the_weight_is_a_third_row():
    curves = [{"asr_percent": [[1, 1.0]], "gap_mean": [[1, -0.25]]}]
    *_, weight = figures.BY_ROUND["by-round-and-weight"]([cell(("x", "never"), curves=curves)]).axes
    assert weight.get_lines()[0].get_xydata().tolist() == [[1, -0.25]]


def test_bars_have_the_papers_dots(tmp_path):
    labels = ("cifar10-trigger", "fedavg")
    cells = [cell(labels, asr_percent=78.0), cell(("cifar10-trigger", "fltrust"))]
    figure = figures._bars(cells, {labels: (86.0, 97.45)})
    (panel,) = figure.axes
    assert sorted(bar.get_width() for bar in panel.patches) == [78, 80]
    dots = [line for line in panel.get_lines() if line.get_marker() == "o"]
    assert [dot.get_xdata()[0] for dot in dots] == [97.45]
    path = tmp_path / "bars.png"
    assert figures.draw(STUDIES["table1"], cells, path)
    assert path.read_bytes().startswith(b"\x89PNG")


def test_bars_show_the_range_of_the_seeds():
    labels = ("cifar10-trigger", "fedavg")
    runs = tuple(
        (Result(f"{rate}", {}, replace(SUMMARY, asr_percent=rate)), None) for rate in (20.0, 50.0)
    )
    (panel,) = figures._bars([Cell(Point(labels, Experiment()), runs)], {}).axes
    assert panel.patches[0].get_width() == 35
    assert [20, 50] in [list(line.get_xdata()) for line in panel.get_lines()]


def test_nothing_to_draw(tmp_path):
    plain = Study("toy", "?", ("a",), lambda scale: [])
    assert not figures.draw(plain, [cell(("a",))], tmp_path / "x.png")
    assert not figures.draw(STUDIES["table1"], [], tmp_path / "x.png")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("study", [one for one in STUDIES.values() if one.figure])
def test_kinds_of_figures_exist(study):
    assert study.figure == "bars" or study.figure in figures.BY_ROUND
