"""``datadefense demo``: one attacked round as a table, a JSON file and a picture."""

import dataclasses
import json
from pathlib import Path

from rich.console import Console
from rich.table import Table

from datadefense.cli.plots import draw_round
from datadefense.defenses import DEFENSES
from datadefense.simulation.one_round import Outcome, attacked_round, try_defenses
from datadefense.storage import write_text


def run_demo(out: Path, seed: int) -> None:
    """Make the round, try every defense on it, show and store what came out."""
    console = Console()
    out.mkdir(parents=True, exist_ok=True)
    with console.status("training 9 honest clients and 1 attacker on MNIST digits ..."):
        attacked = attacked_round(seed)
    accuracy, success = attacked.score(attacked.round.global_params)
    before = Outcome("before the round", accuracy, success, None)
    outcomes = list(try_defenses(attacked, [make() for make in DEFENSES.values()]))

    table = Table(
        title="One federated round, 1 of 10 clients plants a backdoor: a strange 7 becomes a 1",
        title_justify="left",
        caption="MA: accuracy on the main task. ASR: share of unseen strange sevens called 1.",
        caption_justify="left",
    )
    table.add_column("defense")
    for column in ("MA %", "ASR %", "attacker's weight"):
        table.add_column(column, justify="right")
    for outcome in (before, *outcomes):
        weight = outcome.attacker_weight
        table.add_row(
            outcome.defense,
            f"{outcome.ma_percent:.1f}",
            f"{outcome.asr_percent:.1f}",
            "" if weight is None else f"{weight:.3f}",
            end_section=outcome is before,
        )
    console.print(table)

    record = {
        "command": f"datadefense demo --seed {seed}",
        "before": dataclasses.asdict(before),
        "outcomes": [dataclasses.asdict(outcome) for outcome in outcomes],
    }
    write_text(out / "round.json", json.dumps(record, indent=2) + "\n")
    draw_round(before, outcomes, out / "round.png")
    console.print(f"wrote {out / 'round.json'} and {out / 'round.png'}", highlight=False)
