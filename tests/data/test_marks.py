"""Marks that a spreadsheet opens and does not run."""

import csv

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from datadefense.data.marks import read_marks, write_marks

RUN = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
FORMULAS = (
    '=HYPERLINK("http://x")',
    "+1+1",
    "-2",
    "@SUM(1)",
    "ok;=1+1",
    'so "=1+1',
    "a,\t=1",
    "'=x",
)


def test_formulas_are_not_formulas_in_the_file_and_come_back(tmp_path):
    ids = tuple(f"{formula[:2].strip()}{place}" for place, formula in enumerate(FORMULAS))
    write_marks(tmp_path, ids, torch.ones(len(ids), dtype=torch.bool), FORMULAS)
    text = (tmp_path / "marks.csv").read_text()
    for separator in ",;\t":  # whatever a spreadsheet takes for the separator
        for row in csv.reader(text.splitlines(), delimiter=separator):
            assert not [cell for cell in row if cell.strip().startswith(RUN)], separator
    assert read_marks(tmp_path / "marks.csv", ids)[1] == FORMULAS


@given(st.lists(st.text("=+-@'\";, a", max_size=8), min_size=1, max_size=4))
@example(["''='=,'=;-"])
def test_every_note_comes_back(tmp_path_factory, notes):
    folder = tmp_path_factory.mktemp("marks")
    stripped = tuple(note.strip() for note in notes)
    ids = tuple(f"'={place}" for place in range(len(notes)))
    write_marks(folder, ids, torch.zeros(len(notes), dtype=torch.bool), stripped)
    assert read_marks(folder / "marks.csv", ids)[1] == stripped


@pytest.mark.parametrize("formula", FORMULAS[:4])
def test_a_formula_that_somebody_wrote_is_read_as_it_is(tmp_path, formula):
    path = tmp_path / "marks.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "known_clean", "note"), ("a", "yes", formula)])
    assert read_marks(path, ["a"])[1] == (formula,)
