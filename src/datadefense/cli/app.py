"""All commands. Heavy imports happen inside a command, so that --help is quick."""

import sys
from pathlib import Path
from typing import Annotated

import typer

from datadefense.cli.aggregate_app import aggregate
from datadefense.cli.defense_set_app import set_app
from datadefense.cli.flower_app import flower_app
from datadefense.cli.list_app import list_app
from datadefense.cli.options import Changes, DataFolder, Device, WorkerCount
from datadefense.cli.results_app import COMMANDS
from datadefense.cli.too_little_memory import check_address_space
from datadefense.cli.user_errors import user_error

app = typer.Typer(
    name="datadefense",
    help="Keep a federated model free of backdoors.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
data_app = typer.Typer(help="See, verify and convert data sets.", no_args_is_help=True)
app.add_typer(data_app, name="data")
app.add_typer(list_app, name="list")
app.add_typer(set_app, name="defense-set")
app.add_typer(flower_app, name="flower")


def _print_version(wanted: bool) -> None:
    if wanted:
        from datadefense import __version__

        typer.echo(f"datadefense {__version__}")
        raise typer.Exit


@app.callback()
def root(
    version: Annotated[  # noqa: ARG001 - its callback has done all there is to do
        bool,
        typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version."),
    ] = False,
) -> None:
    """Keep a federated model free of backdoors."""
    check_address_space()


@app.command()
def demo(
    out: Annotated[
        Path | None, typer.Option(help="Folder for the runs and the page (default: runs/demo-...).")
    ] = None,
    defenses: Annotated[
        str, typer.Option(help="Names of the defenses, separated by commas.")
    ] = "fedavg,multi-krum,fltrust,datadefense",
    seed: Annotated[int, typer.Option(help="Seed of all random numbers.")] = 0,
    workers: WorkerCount = None,
    set_: Changes = None,
) -> None:
    """Attack a real federation and compare defenses: a table, a plot and a page."""
    _prepare(workers)
    from datadefense.cli.demo import run_demo

    run_demo(out, defenses.split(","), set_ or [], seed, workers)


@app.command()
def run(
    task: Annotated[
        str | None,
        typer.Option(
            "--task",
            "--setup",
            help="Name of a task, or module:name of your own; see `datadefense list tasks`.",
        ),
    ] = None,
    defense: Annotated[
        str | None,
        typer.Option(
            help="Name of a defense, module:Class, or parts joined by + as in nnm+multi-krum "
            "(default: fedavg)."
        ),
    ] = None,
    attack: Annotated[
        str | None,
        typer.Option(
            help="Name of an attack, module:Class, or none; see `datadefense list attacks` "
            "(default: pgd-replacement)."
        ),
    ] = None,
    malicious: Annotated[
        float | None,
        typer.Option(help="Share of all clients that is malicious (default: the task's schedule)."),
    ] = None,
    rounds: Annotated[int | None, typer.Option(help="Rounds of the federation.")] = None,
    defense_set: Annotated[
        Path | None,
        typer.Option(help="Folder of the server's defense set (default: the task's own)."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(help="Seed of all random numbers (default: 0).")
    ] = None,
    scale: Annotated[
        str | None, typer.Option(help="cpu (reduced) or paper (default: cpu).")
    ] = None,
    workers: WorkerCount = None,
    device: Device = "cpu",
    set_: Annotated[
        list[str] | None,
        typer.Option("--set", help="part.key=value; see `datadefense list settings`."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option(help="Configuration as in a run's config.toml.")
    ] = None,
    log: Annotated[
        list[str] | None,
        typer.Option(help="Also log every round to tensorboard, mlflow or wandb."),
    ] = None,
    out: Annotated[Path | None, typer.Option(help="Folder of the run (default: runs/...).")] = None,
    data: DataFolder = None,
    engine: Annotated[str, typer.Option(help="Who trains the clients: builtin or flower.")] = (
        "builtin"
    ),
    superlink: Annotated[
        str | None,
        typer.Option(help="host:port of a running SuperLink (default: Flower simulates nodes)."),
    ] = None,
    root_certificates: Annotated[
        Path | None, typer.Option(help="Root certificate of the SuperLink (TLS).")
    ] = None,
) -> None:
    """Run an attack against a defense and store what happened."""
    from datadefense.cli.experiment_options import ExperimentOptions
    from datadefense.core.settings import SettingsError, check_choice, read_pairs

    check_choice("engine", engine, ("builtin", "flower"))
    if engine == "builtin" and (superlink or root_certificates):
        raise SettingsError("--superlink and --root-certificates need --engine flower")
    if engine == "flower" and (log or device != "cpu"):
        raise SettingsError("--log and --device need --engine builtin")

    chosen: dict[str, object] = {"defense": defense, "attack": attack, "rounds": rounds}
    chosen |= {"seed": seed, "malicious": malicious}
    chosen |= {"server.folder": None if defense_set is None else str(defense_set.absolute())}
    changes = {key: str(value) for key, value in chosen.items() if value is not None}
    for key, text in read_pairs(set_ or []).items():
        if key in changes:
            raise SettingsError(f"{key} is given twice: as an option and by --set")
        changes[key] = text
    options = ExperimentOptions(task, scale, changes, config)
    if engine == "flower":
        from datadefense.cli.run_flower import run_on_flower

        run_on_flower(
            options,
            out=out,
            data=data,
            workers=workers,
            superlink=superlink,
            root_certificates=root_certificates,
        )
        return
    _prepare(workers)
    from datadefense.cli.run import run_experiment

    run_experiment(options, out=out, data=data, workers=workers, device=device, log=log or ())


@app.command()
def resume(
    folder: Annotated[Path, typer.Argument(help="Folder of a run that was interrupted.")],
    data: DataFolder = None,
    workers: WorkerCount = None,
    device: Device = "cpu",
    log: Annotated[
        list[str] | None,
        typer.Option(help="Also log the remaining rounds to tensorboard, mlflow or wandb."),
    ] = None,
) -> None:
    """Continue a run that was interrupted; the result is the same to the bit."""
    _prepare(workers)
    from datadefense.cli.run import resume_experiment

    resume_experiment(folder, data, workers, device, log or ())


@app.command()
def warmup(
    task: Annotated[str, typer.Argument(help="Task whose first model is trained.")],
    scale: Annotated[str, typer.Option(help="cpu (reduced) or paper.")] = "cpu",
    data: DataFolder = None,
    set_: Changes = None,
) -> None:
    """Train and store the first model of a task (its warm start)."""
    from datadefense.cli.run import warm_up
    from datadefense.core.settings import read_pairs

    warm_up(task, scale, read_pairs(set_ or []), data)


app.command()(aggregate)


@data_app.command("list")
def data_list(data: DataFolder = None) -> None:
    """Show which data sets are there, in which layout."""
    from datadefense.cli.data import print_status

    print_status(data)


@data_app.command("check")
def data_check(
    names: Annotated[
        list[str] | None, typer.Argument(help="Data sets (default: all in the folder).")
    ] = None,
    data: DataFolder = None,
) -> None:
    """Read data sets and verify their counts and contents."""
    from datadefense.cli.data import check_datasets

    check_datasets(names or [], data)


@data_app.command("import")
def data_import(
    name: Annotated[str, typer.Argument(help="Data set.")],
    source: Annotated[Path, typer.Argument(help="Folder with its official files.")],
    target: Annotated[Path, typer.Argument(help="Data folder that gets the parquet copy.")],
) -> None:
    """Convert a data set from its official format to parquet."""
    from datadefense.cli.data import import_files

    import_files(name, source, target)


for command in COMMANDS:
    app.command()(command)


def _prepare(workers: int | None) -> None:
    """Let the server of workers import torch beside us, which takes a second."""
    if workers is None or workers > 0:
        from datadefense.simulation.preload import prepare_workers

        prepare_workers(__name__)


def main() -> None:
    """Run the command line; a user's mistake ends in one line, not in a traceback.

    What counts as one is said in `datadefense.cli.user_errors`. Modules of the user's own are also
    looked for in the current folder, behind all others: a file there must not stand in for a
    library.
    """
    sys.path.append(str(Path.cwd()))
    try:
        app()
    except Exception as error:
        said = user_error(error)
        if said is None:
            raise
        typer.echo(f"error: {said}", err=True)
        sys.exit(2)
