import dataclasses

from tests.runs.summaries import SUMMARY

from datadefense.runs.tables import HEADINGS, Compared, cells, markdown, row


def test_cells_fit_the_headings():
    shown = dict(zip(HEADINGS, cells(SUMMARY), strict=True))
    assert shown["defense"] == "median"
    assert shown["MA %"] == "91.5"
    assert shown["excess %"] == "79.0"
    assert shown["attacker's weight"] == ""
    assert shown["detector hits %"] == ""
    assert shown["s/round"] == "0.50"


def test_what_is_not_known_is_empty():
    figures = dataclasses.asdict(SUMMARY) | {"asr_floor_percent": None}
    assert row(figures)[HEADINGS.index("floor %")] == ""


def test_the_table_as_a_document():
    runs = [Compared(dataclasses.replace(SUMMARY, defense=name), []) for name in ("a", "b")]
    text = markdown("Title", "About. " * 30, runs)
    assert text.startswith("# Title\n\nAbout. About.")
    assert max(len(line) for line in text.splitlines() if not line.startswith("|")) <= 100
    rows = [line for line in text.splitlines() if line.startswith("|")]
    assert len(rows) == 4
    assert {line.count("|") for line in rows} == {len(HEADINGS) + 1}
