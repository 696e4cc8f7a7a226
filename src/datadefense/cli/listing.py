"""``datadefense list``: the registries as tables."""

import dataclasses
from typing import Any

from rich.table import Table
from rich.text import Text

from datadefense.cli.plain_console import plain_console
from datadefense.core.defense import Defense
from datadefense.defenses import available
from datadefense.runs.attack_kinds import ATTACKS
from datadefense.runs.presets import SETUPS


def print_defenses() -> None:
    """Print one block a defense: name, what it does, settings with defaults."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    table.add_column(no_wrap=True, style="bold")
    table.add_column()
    for name, defense in available().items():
        table.add_row(name, _first_line(defense))
        for setting in _settings(defense):
            about = setting.metadata.get("help", "")
            value = "" if setting.default is dataclasses.MISSING else f"={setting.default}"
            table.add_row("", Text.assemble((f"{setting.name}{value}", "cyan"), f"  {about}"))
    plain_console().print(table)


def print_setups() -> None:
    """Print one row a setup."""
    table = Table(box=None, padding=(0, 2, 0, 0))
    for column in ("setup", "scale", "data", "model", "clients", "a round", "rounds"):
        table.add_column(column, no_wrap=column == "setup")
    for name, scales in SETUPS.items():
        for scale, one in scales.items():
            numbers = (one.clients, one.clients_per_round, one.rounds)
            table.add_row(name, scale, one.dataset, one.model, *map(str, numbers))
    plain_console().print(table)


def print_attacks() -> None:
    """Print one row an attack."""
    table = Table(box=None, padding=(0, 2, 0, 0), show_header=False)
    for name, kind in ATTACKS.items():
        table.add_row(name, kind.about)
    plain_console().print(table)


def _settings(defense: Any) -> tuple[dataclasses.Field[Any], ...]:
    return dataclasses.fields(defense) if dataclasses.is_dataclass(defense) else ()


def _first_line(defense: type[Defense[Any]]) -> str:
    return (defense.__doc__ or "").strip().partition("\n")[0]
