"""``datadefense report``: one page of the runs in some folders."""

import os
from collections.abc import Sequence
from pathlib import Path

from datadefense.cli.plain_console import plain_console
from datadefense.report.page import write_page
from datadefense.report.reader import read_run
from datadefense.runs.files import REPORT


def write_report(folders: Sequence[Path], out: Path | None) -> None:
    """Write the page of these runs and say where it is."""
    once = list({folder.resolve(): folder for folder in folders}.values())
    path = out or _usual_place(once)
    write_page(path, [read_run(folder) for folder in once])
    size = path.stat().st_size / 1e6
    plain_console().print(f"wrote {path} ({size:.2f} MB)", highlight=False, soft_wrap=True)


def _usual_place(folders: Sequence[Path]) -> Path:
    """Return the page's place: in the run's folder, or in the one that all of them are in."""
    if len(folders) == 1:
        return folders[0] / REPORT
    return Path(os.path.commonpath([folder.resolve().parent for folder in folders])) / REPORT
