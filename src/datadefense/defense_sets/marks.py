"""Marks of a defense set in a spreadsheet: id, known_clean (yes or no) and note.

A note is text that is seen: lines and tabs stay, and every other character that does not print
becomes a space, written or read, so that what is written is what is read. A spreadsheet runs a cell
that begins like a formula. Where an id or a note has such a beginning, an apostrophe is written
before it, which is taken away again on reading.
"""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch
from jaxtyping import Bool
from torch import Tensor

from datadefense.core.storage import write_text
from datadefense.data.errors import DataError, one_line
from datadefense.data.file_content import read_at_most

MARKS = "marks.csv"
COLUMNS = ("id", "known_clean", "note")
MAX_BYTES = 1 << 26
"""Most bytes of the file."""
LONGEST_NOTE = 10_000
"""Most characters of a note."""
_FORMULA = re.compile(r"""((?:^|[,;\t\r\n"])[^\S\t\r\n]*)('*)(?=[=+\-@\uff1d\uff0b\uff0d\uff20])""")
"""Where a cell may begin, whatever a spreadsheet takes for a separator, and a formula follows."""


def write_marks(
    folder: Path, ids: Sequence[str], known_clean: Bool[Tensor, " examples"], notes: Sequence[str]
) -> None:
    """Write the marks of a set, atomically; a note that is too long raises DataError before."""
    texts = [_seen(note) for note in notes]
    for example_id, note in zip(ids, texts, strict=True):
        if len(note) > LONGEST_NOTE:
            raise DataError(
                f"the note of {example_id!r} has {len(note)} characters, expected <= {LONGEST_NOTE}"
            )
    text = io.StringIO()
    rows = csv.writer(text, lineterminator="\n")
    rows.writerow(COLUMNS)
    known = ("yes" if is_clean else "no" for is_clean in known_clean.tolist())
    rows.writerows(zip(map(_escaped, ids), known, map(_escaped, texts), strict=True))
    write_text(folder / MARKS, text.getvalue())


def read_marks(path: Path, ids: Sequence[str]) -> tuple[Tensor, tuple[str, ...]]:
    """Return the marks and notes of these examples; each must have one line, and no other."""
    marks: dict[str, tuple[bool, str]] = {}
    expected = set(ids)
    for line, example_id, known, note in _lines(path):
        where = f"{path}, line {line}"
        if example_id not in expected:
            raise DataError(f"{where}: the set has no example {example_id!r}")
        if example_id in marks:
            raise DataError(f"{where}: {example_id!r} has a line already")
        if known.lower() not in ("yes", "no"):
            raise DataError(
                f"{where}: known_clean of {example_id!r} must be yes or no, got {known!r}"
            )
        marks[example_id] = (known.lower() == "yes", note)
    if missing := [example_id for example_id in ids if example_id not in marks]:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise DataError(f"{path} has no line for {missing[0]!r}{more}")
    found = [marks[example_id] for example_id in ids]
    return torch.tensor([is_clean for is_clean, _ in found]), tuple(note for _, note in found)


def _seen(note: str) -> str:
    """Return a note without characters that are not seen, but for ends of lines and tabs."""
    text = note.replace("\r\n", "\n").replace("\r", "\n")
    return "".join(c if c.isprintable() or c in "\n\t" else " " for c in text).strip()


def _escaped(text: str) -> str:
    """Return a text that no spreadsheet takes for a formula."""
    return _FORMULA.sub(r"\1'\2", text)


def _unescaped(text: str) -> str:
    """Return the text that ``_escaped`` was given."""
    return _FORMULA.sub(lambda found: found[1] + found[2][1:], text)


def _lines(path: Path) -> Iterator[tuple[int, str, str, str]]:
    """Yield each line's number, id, mark and note, however a spreadsheet has separated them."""
    content = read_at_most(path, MAX_BYTES)
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise DataError(f"{path} is not UTF-8: save it as CSV in UTF-8") from error
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
                example_id, note = _unescaped(named["id"]), _seen(_unescaped(_seen(named["note"])))
                yield rows.line_num, example_id, named["known_clean"], note
    except csv.Error as error:
        raise DataError(f"{path}, line {rows.line_num}: {one_line(error)}") from error
