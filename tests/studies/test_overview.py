"""The overview: which cases it has, and the figures of its table."""

from dataclasses import replace

from tests.runs.summaries import SUMMARY
from tests.studies.grid_results import DULL, FIGURES, LOUD, MANY, made_up

from datadefense.studies.overview import (
    COLUMNS,
    WORDS,
    excess,
    figure_of,
    in_words,
    lost,
    overview,
    overview_page,
    short_table,
)
from datadefense.studies.store import Result
from datadefense.studies.studies import STUDIES


def rows_of(text):
    lines = [[part.strip() for part in line.split("|")[1:-1]] for line in text.splitlines()]
    return {line[0]: dict(zip(lines[0], line, strict=True)) for line in lines[2:]}


def test_cases_are_those_in_which_the_attack_works_undefended():
    found = overview(made_up(FIGURES))
    assert set(found.cases) == {LOUD, MANY}
    assert DULL not in found.cases
    assert found.defenses() == ["fedavg", "krum", "datadefense-learned"]


def test_a_case_without_its_undefended_run_is_left_out():
    figures = {labels: value for labels, value in FIGURES.items() if labels != (*LOUD, "fedavg")}
    assert set(overview(made_up(figures)).cases) == {MANY}


def test_figures_of_a_cell():
    cell = overview(made_up(FIGURES)).cases[LOUD]["krum"]
    assert (excess(cell), round(lost(cell), 6)) == (0.54, 8.6)
    assert figure_of(cell) == "0.5 (-9)"
    own = overview(made_up(FIGURES)).cases[LOUD]["datadefense-learned"]
    assert (figure_of(own), lost(own)) == ("0.0", 0.0)


def test_accuracy_that_cannot_be_compared_is_not_called_lost():
    results = made_up({(*LOUD, "fedavg"): (77.0, 10.0)})
    kept = {key: one for key, one in results.items() if one.summary.ma_percent != 90.0}
    assert lost(overview(kept).cases[LOUD]["fedavg"]) == 0.0


def test_the_short_table_has_a_line_a_case_and_gaps_where_nothing_was_run():
    rows = rows_of(short_table(overview(made_up(FIGURES))))
    loud, many = rows["CIFAR-10, trigger, loud"], rows["digits, quiet, 40 % of clients"]
    assert (loud["fedavg"], loud["krum"], loud["median"]) == ("77.0", "0.5 (-9)", "")
    assert (loud["**datadefense-learned**"], loud["its worst seed"]) == ("**0.0**", "0.0 of 1")
    assert (many["fedavg"], many["krum"]) == ("99.6", "")


def test_other_seeds_are_only_in_the_last_column():
    """A mean over three seeds beside one over one would compare different attackers."""
    results = made_up(FIGURES)
    for defense, worse in (("fedavg", 5.0), ("datadefense-learned", 3.14)):
        (point,) = (p for p in STUDIES["targets"].points("cpu") if p.labels == (*LOUD, defense))
        one = replace(point.experiment, seed=1)
        summary = replace(SUMMARY, excess_asr_percent=worse, seed=1)
        results[one.key()] = Result(one.key(), one.changes(), summary)
    row = rows_of(short_table(overview(results)))["CIFAR-10, trigger, loud"]
    assert (row["fedavg"], row["**datadefense-learned**"]) == ("77.0", "**0.0**")
    assert row["its worst seed"] == "3.1 of 2"


def test_every_case_of_the_study_has_words():
    for point in STUDIES["targets"].points("cpu"):
        setup, attack, when, _ = point.labels
        if attack in WORDS:
            assert in_words((setup, attack, when)).startswith(WORDS[setup])
    assert set(COLUMNS) <= {point.labels[-1] for point in STUDIES["targets"].points("cpu")}


def test_the_page_has_picture_and_table():
    found = overview(made_up(FIGURES))
    page = overview_page(found, "seen.png")
    assert "](seen.png)" in page
    assert page.endswith(short_table(found))
