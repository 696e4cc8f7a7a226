"""``datadefense data``: what is there, whether it is right, and how to convert it."""

import sys
from pathlib import Path

from rich.table import Table

from datadefense.cli.plain_console import plain_console
from datadefense.data.catalog import Finding, check, import_dataset, status


def print_status(data: Path | None) -> None:
    """Print one row a data set."""
    _print(status(data))


def check_datasets(names: list[str], data: Path | None) -> None:
    """Verify the data sets named, or all that are there; exit with 1 if one is wrong."""
    present = [finding.name for finding in status(data) if finding.layout is not None]
    findings = [check(name, data) for name in names or present]
    _print(findings)
    if not findings or not all(finding.ok for finding in findings):
        sys.exit(1)


def import_files(name: str, source: Path, target: Path) -> None:
    """Convert a data set and say what was written."""
    for path in import_dataset(name, source, target):
        plain_console().print(f"wrote {path}", highlight=False, soft_wrap=True)


def _print(findings: list[Finding]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("data set", "layout", "train", "test", "edition", ""):
        table.add_column(column)
    for finding in findings:
        counts = dict(finding.counts)
        table.add_row(
            finding.name,
            finding.layout or "not there",
            *(str(counts.get(split, "")) for split in ("train", "test")),
            finding.edition or "",
            finding.problem or ("ok" if finding.ok else ""),
            style="red" if finding.problem else ("" if finding.layout else "dim"),
        )
    plain_console().print(table)
