"""Marks that a spreadsheet opens and does not run."""

import csv
import re

import pytest
import torch
from hypothesis import example, given
from hypothesis import strategies as st

from datadefense.data.errors import DataError
from datadefense.defense_sets.marks import read_marks, write_marks

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


def shown(note):
    """What a note is: characters that are seen, in lines."""
    text = re.sub("\r\n|\r", "\n", note)
    return "".join(c if c.isprintable() or c in "\t\n" else " " for c in text).strip()


UNSEEN = "\r\n\t\x00\x0b\x1c\x1f\x85\u2028\u2029\u200b\ufeff\u202e\xa0\ud800"
NOTES = st.text("=+-@'\";, a" + UNSEEN, max_size=8) | st.text(
    st.characters(exclude_categories=()), max_size=8
)


@given(st.lists(NOTES, min_size=1, max_size=4))
@example(["''='=,'=;-"])
@example(["a\rb"])
@example(["a\r\nb", "\r", "\n", 'a"\r"'])
@example(["\u200b=1", "\ufeff=1", "\x00=1", "a\u2028=1", "\x00'=1"])
def test_every_note_comes_back(tmp_path_factory, notes):
    folder = tmp_path_factory.mktemp("marks")
    ids = tuple(f"'={place}" for place in range(len(notes)))
    expected = tuple(map(shown, notes))
    known = torch.zeros(len(notes), dtype=torch.bool)
    write_marks(folder, ids, known, notes)
    read = read_marks(folder / "marks.csv", ids)[1]
    assert read == expected
    text = (folder / "marks.csv").read_text()
    for separator in ",;\t":
        for row in csv.reader(text.splitlines(), delimiter=separator):
            for cell in row:
                assert not cell.strip().strip(UNSEEN).startswith(RUN)
    write_marks(folder, ids, known, read)
    assert (folder / "marks.csv").read_text() == text


def test_a_note_has_a_length(tmp_path):
    known = torch.zeros(1, dtype=torch.bool)
    write_marks(tmp_path, ["a"], known, ["=" * 10_000])
    assert read_marks(tmp_path / "marks.csv", ["a"])[1] == ("=" * 10_000,)
    with pytest.raises(DataError, match=r"the note of 'a' has 200000 characters, expected <= 1"):
        write_marks(tmp_path, ["a"], known, ["x" * 200_000])
    assert read_marks(tmp_path / "marks.csv", ["a"])[1] == ("=" * 10_000,)


@pytest.mark.parametrize("formula", FORMULAS[:4])
def test_a_formula_that_somebody_wrote_is_read_as_it_is(tmp_path, formula):
    path = tmp_path / "marks.csv"
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([("id", "known_clean", "note"), ("a", "yes", formula)])
    assert read_marks(path, ["a"])[1] == (formula,)
