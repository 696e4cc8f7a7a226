"""The commands of ``datadefense defense-set``. Heavy imports happen inside a command."""

from pathlib import Path
from typing import Annotated

import typer

from datadefense.cli.options import Changes, DataFolder

set_app = typer.Typer(
    help="Build, suggest, see, mark and check defense sets.", no_args_is_help=True
)
SetFolder = Annotated[Path, typer.Argument(help="Folder of the defense set.")]
TaskName = Annotated[
    str | None, typer.Option("--task", "--setup", help="Task; see `datadefense list tasks`.")
]
UsedIn = Annotated[
    str, typer.Option("--task", "--setup", help="Task in which the set is to be used.")
]
ScaleName = Annotated[str, typer.Option("--scale", help="cpu (reduced) or paper.")]
Seed = Annotated[int, typer.Option("--seed", help="Seed of all random numbers.")]


@set_app.command("build")
def set_build(
    out: Annotated[Path, typer.Argument(help="Folder to create.")],
    task: TaskName = None,
    size: Annotated[
        int | None, typer.Option(help="Examples (default: 500, or what the task has).")
    ] = None,
    poison_share: Annotated[
        float | None, typer.Option(help="Share of them that is poisoned (default: 0.2).")
    ] = None,
    dataset: Annotated[
        str | None, typer.Option(help="Data set, to be used with --suspects and --label.")
    ] = None,
    suspects: Annotated[Path | None, typer.Option(help="Folder of suspect images.")] = None,
    label: Annotated[int | None, typer.Option(help="Label that all suspects came with.")] = None,
    clean: Annotated[
        int | None, typer.Option(help="Examples of the data set beside them (default: 400).")
    ] = None,
    known_clean: Annotated[
        int | None,
        typer.Option(help="Examples to mark as known clean (default: a fifth of the set)."),
    ] = None,
    data: DataFolder = None,
    scale: ScaleName = "cpu",
    seed: Seed = 0,
    set_: Changes = None,
) -> None:
    """Make a defense set from a task, or from a data set and suspect images."""
    from datadefense.cli.defense_set_build import BuildOptions, build
    from datadefense.cli.opened_task import Chosen

    options = BuildOptions(size, poison_share, known_clean, dataset, suspects, label, clean)
    build(out, Chosen(task, scale, seed, tuple(set_ or ()), data), options)


@set_app.command("suggest")
def set_suggest(
    out: Annotated[Path, typer.Argument(help="Folder to create.")],
    task: UsedIn,
    method: Annotated[
        str, typer.Option(help="relabelled, triggers, disagreement or inversion.")
    ] = "relabelled",
    from_: Annotated[
        list[int] | None,
        typer.Option(
            "--from", help="Class that a backdoor may mislabel; may be repeated (default: all)."
        ),
    ] = None,
    to: Annotated[
        list[int] | None,
        typer.Option(help="Label that it may be given; may be repeated (default: each class)."),
    ] = None,
    suspect: Annotated[
        Path | None,
        typer.Option(help="Model that may have a backdoor: a run's folder or a file."),
    ] = None,
    trusted: Annotated[
        Path | None,
        typer.Option(help="Model without backdoor, likewise (default: the task's first model)."),
    ] = None,
    sends: Annotated[
        str, typer.Option(help="What the suspect's file holds: models or updates (differences).")
    ] = "models",
    inputs: Annotated[
        Path | None,
        typer.Option(help="Inputs that the server has seen: images or a defense set's folder."),
    ] = None,
    steps: Annotated[
        int | None, typer.Option(help="Search steps for each class, of inversion (default: 300).")
    ] = None,
    size: Annotated[
        int | None, typer.Option(help="Examples (default: 500, or what the task has).")
    ] = None,
    share: Annotated[float, typer.Option(help="Share of them that is suggested.")] = 0.2,
    known_clean: Annotated[
        int | None,
        typer.Option(help="Examples to mark as known clean (default: a fifth of the set)."),
    ] = None,
    data: DataFolder = None,
    scale: ScaleName = "cpu",
    seed: Seed = 0,
    set_: Changes = None,
) -> None:
    """Make a defense set when no poison was seen: from clean examples, a log or a suspect model."""
    from datadefense.cli.compared_models import ModelPlaces
    from datadefense.cli.defense_set_suggest import SuggestOptions, suggest
    from datadefense.cli.opened_task import Chosen

    options = SuggestOptions(
        method=method,
        sources=tuple(from_ or ()),
        targets=tuple(to or ()),
        size=size,
        share=share,
        known_clean=known_clean,
        places=ModelPlaces(suspect, trusted, sends),
        inputs=inputs,
        steps=steps,
    )
    suggest(out, Chosen(task, scale, seed, tuple(set_ or ()), data), options)


@set_app.command("show")
def set_show(
    folder: SetFolder,
    task: TaskName = None,
    data: DataFolder = None,
    out: Annotated[
        Path | None, typer.Option(help="Where the page goes (default: FOLDER/sheet.html).")
    ] = None,
    scale: ScaleName = "cpu",
    seed: Seed = 0,
    set_: Changes = None,
) -> None:
    """Count examples and write a contact sheet; with --task, the most suspect come first."""
    from datadefense.cli.defense_set import show
    from datadefense.cli.opened_task import Chosen

    show(folder, Chosen(task, scale, seed, tuple(set_ or ()), data), out)


@set_app.command("mark")
def set_mark(
    folder: SetFolder,
    ids: Annotated[list[str], typer.Argument(help="Examples.", metavar="ID...")],
    not_clean: Annotated[
        bool, typer.Option("--not-clean", help="Remove the mark instead.")
    ] = False,
    note: Annotated[str | None, typer.Option(help="What to write beside the mark.")] = None,
) -> None:
    """Mark examples as known to be clean."""
    from datadefense.cli.defense_set import mark

    mark(folder, ids, not not_clean, note)


@set_app.command("check")
def set_check(
    folder: SetFolder,
    task: UsedIn,
    data: DataFolder = None,
    scale: ScaleName = "cpu",
    seed: Seed = 0,
    set_: Changes = None,
) -> None:
    """Look for duplicates, wrong labels, too few marks and overlap with test data."""
    from datadefense.cli.defense_set import check
    from datadefense.cli.opened_task import Chosen

    check(folder, Chosen(task, scale, seed, tuple(set_ or ()), data))
