"""``datadefense demo``: the same attack against three defenses, as a table, a plot and a page."""

import time
from pathlib import Path

import torch
from rich.console import Console
from rich.table import Table

from datadefense.cli.plots import draw_curves
from datadefense.cli.run import see_through
from datadefense.experiments.comparison import (
    HEADINGS,
    Compared,
    cells,
    markdown,
    render_comparison,
)
from datadefense.experiments.run import REPORT, start
from datadefense.experiments.setups import experiment
from datadefense.settings import read_pairs
from datadefense.storage import write_text

TITLE = "A strange 7 becomes a 1: one client plants a backdoor every fifth round"
ABOUT = (
    "A LeNet learns real MNIST digits from 50 clients, ten a round. In every fifth round one of "
    "the ten is an attacker who teaches it that sevens from other writers (UCI digits) are ones, "
    "and scales its update to replace the model. MA: accuracy on the main task. ASR: share of "
    "unseen strange sevens that are called 1. Floor: the same share when nobody attacks. Means "
    "over the last 10 rounds."
)


def run_demo(
    out: Path | None, defenses: list[str], pairs: list[str], seed: int, workers: int | None
) -> None:
    """Run digits-edge once for each defense, then show the runs side by side."""
    torch.set_num_threads(1)
    console = Console()
    folder = out or Path("runs") / f"demo-{time.strftime('%Y%m%d-%H%M%S')}"
    changes = read_pairs(pairs)
    wanted = [
        experiment("digits-edge", "cpu", {**changes, "defense": name, "seed": str(seed)})
        for name in defenses
    ]
    runs: list[Compared] = []
    for configured in wanted:
        name = configured.defense
        console.print(f"[bold]{name}[/bold]", highlight=False)
        run = start(configured, folder / name)
        summary = see_through(run, workers, "cpu")
        runs.append(Compared(summary, run.records, f"{name}/{REPORT}"))
    table = Table(title=TITLE, title_justify="left")
    for heading in HEADINGS:
        table.add_column(heading, justify="left" if heading == HEADINGS[0] else "right")
    for one in runs:
        table.add_row(*cells(one.summary))
    console.print(table)
    write_text(folder / "index.html", render_comparison(TITLE, ABOUT, runs))
    write_text(folder / "table.md", markdown(TITLE, ABOUT, runs))
    draw_curves(runs, folder / "curves.png")
    console.print(
        f"wrote {folder / 'index.html'} and {folder / 'curves.png'}",
        highlight=False,
        soft_wrap=True,
    )
