"""Marks of a defense set in a spreadsheet: id, known_clean (yes or no) and note."""

import csv
import io
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from jaxtyping import Bool
from torch import Tensor

from datadefense.data.errors import DataError, one_line
from datadefense.storage import write_text

MARKS = "marks.csv"
COLUMNS = ("id", "known_clean", "note")


def write_marks(
    folder: Path, ids: Sequence[str], known_clean: Bool[Tensor, " examples"], notes: Sequence[str]
) -> None:
    """Write the marks of a set, atomically."""
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    known = ("yes" if one else "no" for one in known_clean.tolist())
    rows.writerows(zip(ids, known, notes, strict=True))
    write_text(folder / MARKS, text.getvalue())


def read_marks(path: Path, ids: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Return the marks and notes of these examples; each must have one line, and no other."""
    marks: dict[str, tuple[bool, str]] = {}
    expected = set(ids)
    for line, one, known, note in _lines(path):
        where = f"{path}, line {line}"
        if one not in expected:
            raise DataError(f"{where}: the set has no example {one!r}")
        if one in marks:
            raise DataError(f"{where}: {one!r} has a line already")
        if known.lower() not in ("yes", "no"):
            raise DataError(f"{where}: known_clean of {one!r} must be yes or no, got {known!r}")
        marks[one] = (known.lower() == "yes", note)
    if missing := [one for one in ids if one not in marks]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(f"{path} has no line for {missing[0]!r}{more}")
    return torch.tensor([marks[one][0] for one in ids]), tuple(marks[one][1] for one in ids)


def _lines(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Yield each line's number, id, mark and note, however a spreadsheet has separated them."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: save it as CSV in UTF-8") from error
    except OSError as error:
        raise DataError(f"{path} cannot be read: {error.strerror or error}") from error
    separator = max(",;\t", key=text.partition("\n")[0].count)
    rows = csv.reader(io.StringIO(text), delimiter=separator)
    try:
        names = [name.strip().lower() for name in next(rows, [])]
        if sorted(names) != sorted(COLUMNS):
            raise DataError(f"{path} must have the columns {', '.join(COLUMNS)}; it has: {names}")
        for row in rows:
            cells = [cell.strip() for cell in row]
            if any(cells[3:]):
                raise DataError(
                    f"{path}, line {rows.line_num}: {len(cells)} cells, expected 3: "
                    f"a note with {separator!r} in it stands in quotes"
                )
            if any(cells):
                named = dict(zip(names, [*cells, "", ""], strict=False))
                yield rows.line_num, named["id"], named["known_clean"], named["note"]
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: {one_line(error)}") from error
