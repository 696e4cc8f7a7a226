"""Commands about results: pages of runs, comparisons, tables, and the paper's studies."""

from pathlib import Path
from typing import Annotated

import typer

from datadefense.cli.options import DataFolder


def report(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
    out: Annotated[
        Path | None,
        typer.Option(help="The page (default: report.html in the folder, or in their parent)."),
    ] = None,
) -> None:
    """Make a page of one run or several: one HTML file that needs no network."""
    from datadefense.cli.report import write_report

    write_report(folders, out)


def compare(
    folders: Annotated[list[Path], typer.Argument(help="Folders of runs.")],
) -> None:
    """Show runs side by side, and where their configurations differ."""
    from datadefense.cli.compare import compare_runs

    compare_runs(folders)


def export(
    folder: Annotated[Path, typer.Argument(help="Folder of a run.")],
    out: Annotated[Path, typer.Argument(help="File that ends in .csv, .jsonl or .parquet.")],
) -> None:
    """Write a run's rounds as a table, one row a round."""
    from datadefense.cli.compare import export_rounds

    export_rounds(folder, out)


def reproduce(
    name: Annotated[
        str, typer.Argument(help="Name of a study, or all; see `datadefense list studies`.")
    ],
    scale: Annotated[str, typer.Option(help="cpu (reduced) or paper.")] = "cpu",
    seeds: Annotated[int, typer.Option(help="Number of seeds for each point: 0, 1, ...")] = 1,
    jobs: Annotated[
        int | None, typer.Option(help="Runs at a time, one thread each (default: one a core).")
    ] = None,
    only: Annotated[
        str, typer.Option(help="Labels that a point must have, separated by commas.")
    ] = "",
    data: DataFolder = None,
    store: Annotated[Path, typer.Option(help="File with the results so far.")] = Path(
        "results/runs.jsonl"
    ),
    pages: Annotated[Path, typer.Option(help="Folder of the rendered pages.")] = Path(
        "docs/results"
    ),
    run: Annotated[
        bool, typer.Option("--run/--render-only", help="Run what is missing, or only render.")
    ] = True,
) -> None:
    """Run the grid behind a table or figure, skipping what is stored, and render it."""
    from datadefense.cli.reproduce import reproduce_study

    reproduce_study(
        name,
        scale=scale,
        seeds=seeds,
        jobs=jobs,
        only=only,
        data=data,
        store=store,
        pages=pages,
        run=run,
    )


def list_studies() -> None:
    """Grids of runs that `datadefense reproduce` knows."""
    from datadefense.cli.reproduce import list_studies as show

    show()


COMMANDS = (report, compare, export, reproduce)
"""In the order in which --help lists them."""
