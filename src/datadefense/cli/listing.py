"""``datadefense list``: the registries as tables."""

import dataclasses
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from datadefense.defenses import available
from datadefense.defenses.base import Defense
from datadefense.experiments.experiment import ATTACKS
from datadefense.experiments.setups import SETUPS


def print_defenses() -> None:
    """Print one block a defense: name, what it does, settings with defaults."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, defense in available().items():
        table.add_row(name, escape(_first_line(defense)))
        for setting in _settings(defense):
            about = setting.metadata.get("help", "")
            value = "" if setting.default is dataclasses.MISSING else f"={setting.default}"
            table.add_row("", f"[cyan]{setting.name}{escape(value)}[/cyan]  {escape(about)}")
    Console(soft_wrap=False).print(table)


def print_setups() -> None:
    """Print one row a setup."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("setup", "scale", "data", "model", "clients", "a round", "rounds"):
        table.add_column(column, no_wrap=column == "setup")
    for name, scales in SETUPS.items():
        for scale, one in scales.items():
            numbers = (one.clients, one.clients_per_round, one.rounds)
            table.add_row(name, scale, one.dataset, one.model, *map(str, numbers))
    Console().print(table)


def print_attacks() -> None:
    """Print one row an attack."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, kind in ATTACKS.items():
        table.add_row(name, kind.about)
    Console().print(table)


def _settings(defense: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(defense) if dataclasses.is_dataclass(defense) else ()


def _first_line(defense: type[Defense[Any]]) -> str:
    return (defense.__doc__ or "").strip().partition("\n")[0]
