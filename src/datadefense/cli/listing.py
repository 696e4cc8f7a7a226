"""``datadefense list``: the registries as tables."""

import dataclasses
from collections.abc import Iterable, Mapping
from typing import Any

import typer
from rich.table import Table
from rich.text import Text

from datadefense import attacks, postaggregators, preaggregators, schedules, tasks
from datadefense.attacks.base import Attack
from datadefense.cli.plain_console import plain_console
from datadefense.core.defense import Defense
from datadefense.core.needs import needs_words
from datadefense.core.registry import about
from datadefense.defenses import available, named_parts
from datadefense.runs.config import NONE, ORDER, PLUGINS, settings_of
from datadefense.runs.configure import configure

WIDE = 1000
"""Characters of a line where no terminal limits it."""


def print_defenses() -> None:
    """Print one block a defense: name, what it does, settings with defaults."""
    _print_plugins((name, cls, _of_defense(cls)) for name, cls in available().items())


def print_preaggregators() -> None:
    """Print what may stand before a defense (``nnm+multi-krum``)."""
    _print_plugins((n, cls, about(cls)) for n, cls in preaggregators.REGISTRY.available().items())


def print_postaggregators() -> None:
    """Print what may stand behind a defense (``multi-krum+fedadam``)."""
    _print_plugins((n, cls, about(cls)) for n, cls in postaggregators.REGISTRY.available().items())


def print_attacks() -> None:
    """Print one block an attack: name, what it does, its threat model, settings with defaults."""
    rows = [(NONE, object, "nobody attacks")]
    rows += [(name, cls, _of_attack(cls)) for name, cls in attacks.REGISTRY.available().items()]
    _print_plugins(rows)


def print_schedules() -> None:
    """Print one block a schedule."""
    found = schedules.REGISTRY.available()
    _print_plugins((name, cls, about(cls)) for name, cls in found.items())


def print_tasks() -> None:
    """Print one block a task, and its numbers at each scale."""
    found = tasks.REGISTRY.available()
    _print_plugins((name, cls, about(cls)) for name, cls in found.items())
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("task", "scale", "clients", "a round", "rounds"):
        table.add_column(column, no_wrap=True)
    for name, cls in found.items():
        for scale in cls.presets:
            federation = configure(name, scale, {}).federation
            numbers = (federation.clients, federation.clients_per_round, federation.rounds)
            table.add_row(name, scale, *map(str, numbers))
    _show(table)


def print_settings(task: str | None, scale: str, chosen: Mapping[str, str]) -> None:
    """Print every setting of an experiment by its key, with its value and what it is."""
    experiment = configure(task or next(iter(tasks.TASKS)), scale, chosen)
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("setting", "value", "what it is"):
        table.add_column(column, no_wrap=column == "setting")
    table.add_row("seed", str(experiment.seed), "root of all randomness")
    for part in ORDER:
        value = getattr(experiment, part)
        if part in PLUGINS:
            words = "nobody attacks" if value is None else about(type(value))
            table.add_row(part, experiment.name_of(part), words)
        helped = _helped(value)
        for name, found in settings_of(value).items():
            table.add_row(f"{part}.{name}", _as_typed(found), helped.get(name, ""))
    _show(table)


def _print_plugins(rows: Iterable[tuple[str, type[Any], str]]) -> None:
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, cls, words in rows:
        table.add_row(name, words)
        for setting in _settings(cls):
            help_text = setting.metadata.get("help", "")
            default = setting.default
            value = "" if default is dataclasses.MISSING else f"={_as_typed(default)}"
            table.add_row("", Text.assemble((f"{setting.name}{value}", "cyan"), f"  {help_text}"))
    _show(table)


def _show(table: Table) -> None:
    """Print a table; into a pipe or a file a line a row, however long, so that grep finds it."""
    console = plain_console()
    if console.is_terminal:
        console.print(table)
        return
    console.width = WIDE
    with console.capture() as captured:
        console.print(table)
    for line in captured.get().splitlines():
        typer.echo(line.rstrip())


def _as_typed(value: object) -> str:
    """Return a value as a user types it."""
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def _of_defense(cls: type[Any]) -> str:
    needs = needs_words(cls)
    return f"{about(cls)} [needs {needs}]" if needs else about(cls)


def _of_attack(cls: type[Attack]) -> str:
    return f"{about(cls)} [{cls.threat.words()}]"


def _helped(value: Any) -> dict[str, str]:
    """Return what each setting of a part is; those of a composed defense are ``part.name``."""
    parts = named_parts(value) if isinstance(value, Defense) else [("", value)]
    return {
        f"{name}{setting.name}": setting.metadata.get("help", "")
        for name, part in parts
        for setting in _settings(part)
    }


def _settings(plugin: Any) -> tuple["dataclasses.Field[Any]", ...]:
    found = dataclasses.fields(plugin) if dataclasses.is_dataclass(plugin) else ()
    return tuple(setting for setting in found if setting.init)
