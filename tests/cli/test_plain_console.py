from pathlib import Path

import pytest
from rich.table import Table

from datadefense.cli.plain_console import plain_console

NAMES = (":skull:", "[red]x[/red]", "[/nothing]", "[link=http://x]y[/link]")


@pytest.mark.parametrize("stderr", [False, True])
def test_text_is_shown_as_it_is(capsys, monkeypatch, stderr):
    monkeypatch.setenv("COLUMNS", "160")
    table = Table(box=None)
    table.add_column(NAMES[0])
    for name in NAMES:
        table.add_row(name)
        plain_console(stderr=stderr).print(f"wrote {name}")
    plain_console(stderr=stderr).print(table)
    out = capsys.readouterr()
    shown = out.err if stderr else out.out
    assert shown.count(":skull:") == 3
    assert all(shown.count(name) == 2 for name in NAMES[1:])


def test_every_command_prints_to_it():
    folder = Path(__file__).parents[2] / "src" / "datadefense"
    made = [path.name for path in folder.rglob("*.py") if "Console(" in path.read_text()]
    assert made == ["plain_console.py"]
