"""Options that several commands share."""

from pathlib import Path
from typing import Annotated

import typer

DataFolder = Annotated[
    Path | None, typer.Option("--data", help="Folder with data sets (default: DATADEFENSE_DATA).")
]
