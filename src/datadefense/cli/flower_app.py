"""The commands of ``datadefense flower``. Heavy imports happen inside a command."""

from pathlib import Path
from typing import Annotated

import typer

flower_app = typer.Typer(help="Defend a federation that runs on Flower.", no_args_is_help=True)


@flower_app.callback()
def flower() -> None:
    """Defend a federation that runs on Flower."""


@flower_app.command("init")
def flower_init(
    folder: Annotated[Path, typer.Argument(help="Folder to create; the app gets its name.")],
) -> None:
    """Write a Flower app whose server is defended, to run and to change."""
    from datadefense.cli.flower_init import write_app

    name = write_app(folder)
    typer.echo(f"wrote the Flower app {name} to {folder}; next: cd {folder}, then see README.md")
