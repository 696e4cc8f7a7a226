"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

WorkerCount = Annotated[
    int | None, typer.Option(help="Processes that train clients (default: one a core).")
]
Device = Annotated[str, typer.Option(help="Where clients train: cpu, cuda, ...")]
Changes = Annotated[
    list[str] | None, typer.Option("--set", help="A setting, key=value; may be repeated.")
]
DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder with data sets (default: DATADEFENSE_DATA).")
]
