"""``datadefense compare`` and ``export``: runs side by side in the terminal, rounds as a table."""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from rich.table import Table

from datadefense.cli.plain_console import plain_console
from datadefense.core.foreign import sanitize
from datadefense.core.json_file import to_json
from datadefense.core.settings import SettingsError
from datadefense.report.reader import StoredRun, read_run
from datadefense.runs.metrics import NAMES, figures_of
from datadefense.runs.tables import HEADINGS, row
from datadefense.simulation.rounds import RoundRecord

COLUMNS = ("round", *NAMES)
"""Columns of an exported table."""


def compare_runs(folders: Sequence[Path]) -> None:
    """Print a column of figures for each run, then where their configurations differ."""
    runs = [read_run(folder) for folder in folders]
    console = plain_console()
    shown = Table(box=None, pad_edge=False)
    shown.add_column("")
    for run in runs:
        shown.add_column(sanitize(run.name), justify="right", overflow="fold")
    columns = [("",) * len(HEADINGS) if run.figures is None else row(run.figures) for run in runs]
    for heading, *figures in zip(HEADINGS, *columns, strict=True):
        shown.add_row(heading, *figures)
    differing = _differences(runs)
    if differing:
        shown.add_row()
        shown.add_row("they differ in")
    for key, values in differing.items():
        shown.add_row(f"  {sanitize(key)}", *values)
    console.print(shown)
    for run in runs:
        for note in run.notes:
            console.print(
                f"{sanitize(run.name)}: {sanitize(note, 400)}", highlight=False, soft_wrap=True
            )


def _differences(runs: Sequence[StoredRun]) -> dict[str, list[str]]:
    """Return the settings in which runs differ; not those of plug-ins that have other names."""
    keys = list(dict.fromkeys(key for run in runs for key in run.choices))
    columns = {key: [sanitize(str(run.choices.get(key, ""))) for run in runs] for key in keys}
    differing = {key: values for key, values in columns.items() if len(set(values)) > 1}
    return {
        key: values
        for key, values in differing.items()
        if "." not in key or key.partition(".")[0] not in differing
    }


def export_rounds(folder: Path, out: Path) -> None:
    """Write one row a round as CSV, JSON lines or Parquet, by the name's ending."""
    rows = [_row(record) for record in read_run(folder).records]
    if out.suffix == ".csv":
        with out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, COLUMNS)
            writer.writeheader()
            writer.writerows(rows)
    elif out.suffix == ".jsonl":
        out.write_text("".join(to_json(row) + "\n" for row in rows), encoding="utf-8")
    elif out.suffix == ".parquet":
        _write_parquet(rows, out)
    else:
        raise SettingsError(f"the file must end in .csv, .jsonl or .parquet, got {out.name}")
    plain_console().print(f"wrote {out}: {len(rows)} rounds", highlight=False, soft_wrap=True)


def _row(record: RoundRecord) -> dict[str, Any]:
    figures = figures_of(record)
    return {"round": record.round, **{name: figures.get(name) for name in NAMES}}


def _write_parquet(rows: list[dict[str, Any]], out: Path) -> None:
    try:
        import pyarrow  # noqa: PLC0415 - an extra
        from pyarrow import parquet  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise SettingsError("parquet needs pyarrow: pip install 'datadefense[data]'") from error
    parquet.write_table(pyarrow.Table.from_pylist(rows), out)
