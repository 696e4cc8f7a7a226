"""Studies of a toy grid: which runs they want, and the table that results make."""

from dataclasses import replace

import pytest
from tests.runs.summaries import SUMMARY

from datadefense.attacks import Pgd
from datadefense.defenses import Krum
from datadefense.runs.config import Experiment
from datadefense.schedules import FixedFrequency
from datadefense.studies import study
from datadefense.studies.paper import Published
from datadefense.studies.store import Result
from datadefense.studies.study import MOST_SEEDS, Point, Study, cells, page, spread, table

CALM = Experiment()
ATTACKED = Experiment(attack=Pgd(), schedule=FixedFrequency())
DEFENDED = replace(ATTACKED, defense=Krum())
GRID = {
    ("pgd", "fedavg"): ATTACKED,
    ("pgd", "krum"): DEFENDED,
    ("none", "fedavg"): CALM,
}
STUDY = Study(
    "toy",
    "does it hold?",
    ("attack", "defense"),
    lambda scale: [Point(labels, replace(one, scale=scale)) for labels, one in GRID.items()],
)


def results_of(*runs):
    """A store's results from pairs of an experiment and what its summary has of its own."""
    return {
        one.key(): Result(one.key(), one.changes(), replace(SUMMARY, **figures))
        for one, figures in runs
    }


def row_of(results):
    """The only row of the table, by head."""
    lines = table(STUDY, "cpu", results).splitlines()
    heads, _, row = ([cell.strip() for cell in line.split("|")[1:-1]] for line in lines)
    return dict(zip(heads, row, strict=True))


def test_calm_runs_come_first_and_each_run_once():
    expected = [
        replace(one, seed=seed)
        for one in (CALM, GRID["pgd", "fedavg"], DEFENDED)
        for seed in range(3)
    ]
    assert STUDY.wanted("cpu", 3) == expected


def test_points_that_differ_in_the_attack_share_the_calm_run():
    radii = Study(
        "radii",
        "?",
        ("radius",),
        lambda scale: [
            Point((str(r),), replace(ATTACKED, attack=Pgd(radius=r))) for r in (0.5, 2.0)
        ],
    )
    wanted = radii.wanted("cpu", 1)
    assert [one.name_of("attack") for one in wanted] == ["none", "pgd", "pgd"]


def test_the_scale_reaches_the_experiments():
    assert {one.scale for one in STUDY.wanted("paper", 1)} == {"paper"}


@pytest.mark.parametrize(
    ("only", "expected"),
    [
        ("krum", [CALM, DEFENDED]),
        ("pgd,fedavg", [CALM, GRID["pgd", "fedavg"]]),
        ("none,", [CALM]),
        ("none,krum", []),
        ("kru", []),
    ],
)
def test_only_keeps_points_with_all_the_words(only, expected):
    assert STUDY.wanted("cpu", 1, only) == expected


def test_spread_is_the_mean_and_the_standard_deviation_of_a_sample():
    values = [1.0, 2.0, 6.0]
    mean = sum(values) / 3
    deviation = (sum((value - mean) ** 2 for value in values) / (3 - 1)) ** 0.5
    assert spread(values, 3) == f"{mean:.3f} ± {deviation:.3f}"
    assert spread(values) == "3.0 ± 2.6"


def test_points_without_results_have_no_cell():
    found = cells(STUDY, "cpu", results_of((DEFENDED, {})))
    assert [cell.point.labels for cell in found] == [("pgd", "krum")]
    assert cells(STUDY, "paper", results_of((DEFENDED, {}))) == []


def test_a_row_has_labels_seeds_and_figures():
    row = row_of(
        results_of(
            (DEFENDED, {"ma_percent": 90.0, "asr_percent": 10.0, "attacker_weight_mean": 0.1}),
            (
                replace(DEFENDED, seed=1),
                {"ma_percent": 94.0, "asr_percent": 20.0, "attacker_weight_mean": 0.1004},
            ),
        )
    )
    assert (row["attack"], row["defense"], row["seeds"]) == ("pgd", "krum", "2")
    assert row["MA %"] == "92.0 ± 2.8"
    assert row["ASR %"] == "15.0 ± 7.1"
    assert row["floor %"] == "1.0 ± 0.0"
    assert row["attacker's weight"] == "0.100 ± 0.000"


def test_the_worst_is_the_greatest_excess_of_any_seed():
    seeds = [
        (replace(DEFENDED, seed=s), {"excess_asr_percent": e}) for s, e in ((0, -1), (3, 7.25))
    ]
    row = row_of(results_of(*seeds))
    assert (row["excess %"], row["worst %"], row["seeds"]) == ("3.1 ± 5.8", "7.2", "2")


def test_dma_is_the_difference_to_the_calm_run_of_the_same_seed():
    results = results_of(
        (replace(CALM, seed=4), {"ma_percent": 90.0}),
        (replace(CALM, seed=5), {"ma_percent": 80.0}),
        (replace(DEFENDED, seed=4), {"ma_percent": 89.0}),
        (replace(DEFENDED, seed=5), {"ma_percent": 82.0}),
    )
    defended, calm = cells(STUDY, "cpu", results)
    assert defended.cost_in_accuracy() == [89.0 - 90.0, 82.0 - 80.0]
    assert calm.cost_in_accuracy() == [0.0, 0.0]
    assert "| 0.5 ± 2.1 |" in table(STUDY, "cpu", results)


def test_dma_is_beside_the_runs_own_calm_run_where_it_is_known():
    """The stored calm run may be another machine's, with another warm start."""
    results = results_of(
        (CALM, {"ma_percent": 90.0}), (DEFENDED, {"ma_percent": 89.0, "calm_ma_percent": 88.0})
    )
    assert cells(STUDY, "cpu", results)[0].cost_in_accuracy() == [89.0 - 88.0]


def test_dma_is_blank_unless_every_seed_has_its_calm_run():
    assert row_of(results_of((DEFENDED, {})))["dMA"] == ""
    results = results_of((DEFENDED, {}), (replace(DEFENDED, seed=1), {}), (CALM, {}))
    assert cells(STUDY, "cpu", results)[0].cost_in_accuracy() == []


@pytest.mark.parametrize(
    ("head", "figure"),
    [
        ("attacker's weight", "attacker_weight_mean"),
        ("honest excluded %", "honest_excluded_percent"),
        ("detector hits %", "detector_hits_percent"),
    ],
)
def test_a_figure_that_one_seed_lacks_is_blank(head, figure):
    with_it, without = {figure: 0.5}, {figure: None}
    seeds = [DEFENDED, replace(DEFENDED, seed=1)]
    assert row_of(results_of((seeds[0], with_it), (seeds[1], without)))[head] == ""
    assert row_of(results_of((seeds[0], with_it), (seeds[1], with_it)))[head].startswith("0.5")


def test_seeds_are_counted_as_far_as_a_table_looks():
    runs = [(replace(DEFENDED, seed=seed), {}) for seed in range(MOST_SEEDS + 5)]
    assert row_of(results_of(*runs))["seeds"] == str(MOST_SEEDS)


@pytest.mark.parametrize("scale", ["cpu", "paper"])
def test_the_page_names_the_question_and_the_command_and_has_the_table(scale):
    results = results_of((replace(DEFENDED, scale=scale), {}))
    text = page(STUDY, scale, results)
    assert text.startswith("# toy: does it hold?\n")
    assert f"`datadefense reproduce toy --scale {scale}`" in text
    assert text.endswith(table(STUDY, scale, results))
    assert "| pgd | krum | 1 |" in text
    assert "\n\nWe differ.\n\n|" in page(STUDY, scale, results, remarks="We differ.\n")


def test_the_papers_rate_is_marked_where_ours_is_another(monkeypatch):
    known = {("pgd", "krum"): (80.0, 16.0), ("pgd", "fedavg"): (80.0, 12.0)}
    monkeypatch.setattr(study, "published", lambda name: Published("Table 0", known))
    results = results_of((DEFENDED, {"asr_percent": 10.0}), (GRID["pgd", "fedavg"], {}))
    near = results_of((GRID["pgd", "fedavg"], {"asr_percent": 10.0}))
    text = table(STUDY, "cpu", results | near)
    assert "| 80.00 | 16.00 \u2260 |" in text
    assert "| 80.00 | 12.00 |" in text
    assert "Beside it the paper's Table 0" in page(STUDY, "cpu", results)
