"""``datadefense demo``: the same attack against four defenses, as a table, a plot and a page."""

import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch
from rich.table import Table

from datadefense.cli.plain_console import plain_console
from datadefense.cli.plots import draw_curves
from datadefense.cli.run import see_through
from datadefense.core.settings import SettingsError, read_pairs
from datadefense.core.storage import write_text
from datadefense.report.page import write_page
from datadefense.report.reader import read_run
from datadefense.runs.configure import configure
from datadefense.runs.run import start
from datadefense.runs.summary import Summary
from datadefense.runs.tables import HEADINGS, Compared, cells, markdown

LEFT_OUT = ("MA without attack %", "final ASR %")
"""Headings that the page has and the terminal has no room for."""
TITLE = "A strange 7 becomes a 1: a fifth of the clients has a few poisoned examples"
ABOUT = (
    "A LeNet learns real MNIST digits from 50 clients, ten a round. Ten of the 50 are malicious, "
    "in the plainest way there is: a fifth of their examples are sevens from other writers (UCI "
    "digits) that are labelled 1; they train as everybody does and scale nothing. MA: clean "
    "accuracy. ASR: share of unseen strange sevens that are called 1. Floor: the same share "
    "without attack. Means over the last 10 rounds, one seed."
)
ATTACK = {"attack": "data-poisoning", "malicious": "0.2"}
"""Who attacks in the demo, unless the caller says otherwise."""


def run_demo(
    out: Path | None, defenses: list[str], pairs: list[str], seed: int, workers: int | None
) -> None:
    """Run digits-edge once for each defense, then show the runs side by side."""
    torch.set_num_threads(1)
    console = plain_console()
    folder = out or Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    changes = read_pairs(pairs)
    for key, option in (("defense", "--defenses"), ("seed", "--seed")):
        if key in changes:
            raise SettingsError(f"{key} cannot be set by --set in the demo: use {option}")
    wanted = [
        configure("digits-edge", "cpu", {**_attack(changes), "defense": name, "seed": str(seed)})
        for name in defenses
    ]
    compared: list[Compared] = []
    for configured in wanted:
        name = configured.name_of("defense")
        console.print(name, style="bold", highlight=False)
        run = start(configured, folder / name)
        summary = see_through(run, workers, "cpu")
        compared.append(Compared(summary, run.records))
    console.print(_table([run.summary for run in compared]))
    stored = [read_run(folder / run.summary.defense) for run in compared]
    write_page(folder / "index.html", stored, TITLE, ABOUT)
    write_text(folder / "table.md", markdown(TITLE, ABOUT, compared))
    draw_curves(compared, folder / "curves.png")
    console.print(
        f"wrote {folder / 'index.html'} and {folder / 'curves.png'}",
        highlight=False,
        soft_wrap=True,
    )


def _attack(changes: Mapping[str, str]) -> dict[str, str]:
    """Return the changes with the demo's attack; a schedule of the caller's replaces its pool."""
    own = [key for key in changes if key.startswith("schedule")]
    return {**(ATTACK if not own else {"attack": ATTACK["attack"]}), **changes}


def _table(summaries: Sequence[Summary]) -> Table:
    """Return the runs as a table that fits into 80 columns: headings are broken, two left out."""
    table = Table(title=TITLE, title_justify="left", box=None, padding=(0, 2, 0, 0), pad_edge=False)
    columns = zip(HEADINGS, *map(cells, summaries), strict=True)
    shown = [column for column in columns if column[0] not in LEFT_OUT]
    headings, *rows = zip(*shown, strict=True)
    for heading, column in zip(headings, shown, strict=True):
        width = max(map(len, [*heading.split(), *column[1:]]))
        table.add_column(
            heading, justify="left" if heading == headings[0] else "right", width=width
        )
    for row in rows:
        table.add_row(*row)
    return table
