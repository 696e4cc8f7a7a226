"""The headline: rows of cases that have been run with the default, and the worst seed."""

from dataclasses import replace

from tests.runs.summaries import SUMMARY

from datadefense.studies.headline import CASES, COLUMNS, headline
from datadefense.studies.store import Result
from datadefense.studies.studies import STUDIES

WORDS = "20 % of clients, a fifth"


def results(figures):
    """Return made-up results by defense and seed: excess and accuracy."""
    study, labels = CASES[WORDS]
    found = {}
    for point in STUDIES[study].points("cpu"):
        for (defense, seed), (excess, accuracy) in figures.items():
            if point.labels == (*labels, defense):
                one = replace(point.experiment, seed=seed)
                told = replace(
                    SUMMARY,
                    seed=seed,
                    defense=defense,
                    excess_asr_percent=excess,
                    ma_percent=accuracy,
                    calm_ma_percent=95.0,
                )
                found[one.key()] = Result(one.key(), one.changes(), told)
    return found


def rows(table):
    heads, _, *lines = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return [dict(zip(heads, line, strict=True)) for line in lines]


def test_every_case_names_points_of_its_study():
    for study, labels in CASES.values():
        known = {point.labels for point in STUDIES[study].points("cpu")}
        assert {(*labels, defense) for defense in COLUMNS} <= known


def test_means_worst_seed_and_accuracy():
    figures = {
        ("fedavg", 0): (96.0, 94.0),
        ("datadefense", 0): (-0.5, 94.0),
        ("datadefense", 1): (1.5, 95.0),
    }
    (row,) = rows(headline(results(figures)))
    assert row["attackers"] == WORDS
    assert (row["fedavg"], row["median"], row["**datadefense**"]) == ("96.0", "", "**0.5**")
    assert (row["worst seed"], row["its accuracy"]) == ("1.5 of 2", "-0.5")


def test_a_case_that_the_default_has_not_met_is_left_out():
    assert rows(headline(results({("fedavg", 0): (96.0, 94.0)}))) == []
