"""The commands of ``datadefense list``. Heavy imports happen inside a command."""

from typing import Annotated

import typer

from datadefense.cli.results_app import list_studies

list_app = typer.Typer(help="List tasks, attacks, defenses, schedules, settings and studies.")


@list_app.callback(invoke_without_command=True)
def list_all(context: typer.Context) -> None:
    """List tasks, attacks, defenses, schedules, settings and studies."""
    if context.invoked_subcommand is None:
        typer.echo(context.get_help())


@list_app.command("tasks")
@list_app.command("setups", hidden=True)
def list_tasks() -> None:
    """Show the tasks."""
    from datadefense.cli.listing import print_tasks

    print_tasks()


@list_app.command("attacks")
def list_attacks() -> None:
    """Show each attack with its threat model and settings."""
    from datadefense.cli.listing import print_attacks

    print_attacks()


@list_app.command("preaggregators")
def list_preaggregators() -> None:
    """Show the pre-aggregators, which come before a defense: nnm+multi-krum."""
    from datadefense.cli.listing import print_preaggregators

    print_preaggregators()


@list_app.command("postaggregators")
def list_postaggregators() -> None:
    """Show the post-aggregators, which come after a defense: multi-krum+fedadam."""
    from datadefense.cli.listing import print_postaggregators

    print_postaggregators()


@list_app.command("schedules")
def list_schedules() -> None:
    """Show each schedule: who attacks when."""
    from datadefense.cli.listing import print_schedules

    print_schedules()


@list_app.command("settings")
def list_settings(
    task: Annotated[str | None, typer.Option("--task", "--setup", help="Task of the run.")] = None,
    attack: Annotated[str | None, typer.Option(help="Attack of the run.")] = None,
    defense: Annotated[str | None, typer.Option(help="Defense of the run.")] = None,
    schedule: Annotated[str | None, typer.Option(help="Schedule of the run.")] = None,
    scale: Annotated[str, typer.Option(help="cpu (reduced) or paper.")] = "cpu",
) -> None:
    """Show every setting of a run by its key, with its value and what it is."""
    from datadefense.cli.listing import print_settings

    chosen = {"attack": attack, "defense": defense, "schedule": schedule}
    print_settings(task, scale, {k: name for k, name in chosen.items() if name is not None})


@list_app.command("defenses")
def list_defenses() -> None:
    """Show each defense with its settings and one line on what it does."""
    from datadefense.cli.listing import print_defenses

    print_defenses()


list_app.command("studies")(list_studies)
