"""Do the attacks work? Each setup undefended, with and without an attack, over several seeds.

    python -m benchmarks.attacks --data DIR [--setups A,B] [--attacks none,pgd] [--seeds 3]

Runs are appended to ``results/attacks/runs.jsonl`` (one that is there already is not repeated) and
the table ``results/attacks/README.md`` is made from all of them.
"""

import sys
from statistics import fmean
from typing import Any

import torch

from benchmarks.grid import grid_parser, run_missing
from datadefense.experiments.experiment import Experiment
from datadefense.experiments.setups import SETUPS, experiment
from datadefense.storage import write_text

ATTACKS = ("none", "pgd", "pgd-replacement")
MOST_SEEDS = 20


def configuration(setup: str, attack: str, seed: int) -> Experiment:
    """Return the experiment as it is configured now; runs of an earlier one are not shown."""
    changes = {"attack": attack, "seed": str(seed), "defense": "fedavg"}
    return experiment(setup, "cpu", changes)


def table(runs: dict[str, dict[str, Any]]) -> str:
    """Return the table of all runs: means over seeds, and the least excess of any seed."""
    lines = [
        "# Do the attacks work?",
        "",
        "fedavg, no defense, cpu scale. Means over seeds of the means over the last 10 evaluated",
        "rounds; the floor is the same run without an attack. Made by",
        "`python -m benchmarks.attacks --data DIR`.",
        "",
        "| setup | attack | seeds | MA % | ASR % | floor % | excess % | least excess % | s/round |",
        "|---|---|---|---|---|---|---|---|---|",
    ]
    for setup in SETUPS:
        for attack in ATTACKS:
            keys = [configuration(setup, attack, seed).key() for seed in range(MOST_SEEDS)]
            if not (group := [runs[key] for key in keys if key in runs]):
                continue
            means = [
                f"{fmean(run[key] for run in group):.1f}"
                for key in ("ma_percent", "asr_percent", "asr_floor_percent", "excess_asr_percent")
            ]
            least = min(run["excess_asr_percent"] for run in group)
            seconds = fmean(run["seconds_per_round"] for run in group)
            cells = (setup, attack, len(group), *means, f"{least:.1f}", f"{seconds:.2f}")
            lines.append(f"| {' | '.join(map(str, cells))} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing and write the table."""
    parser = grid_parser(__doc__, "results/attacks")
    parser.add_argument("--setups", default=",".join(SETUPS))
    parser.add_argument("--attacks", default=",".join(ATTACKS))
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = (
        configuration(setup, attack, seed)
        for seed in range(options.seeds)
        for setup in options.setups.split(",")
        for attack in options.attacks.split(",")
    )
    runs = run_missing(wanted, options.out / "runs.jsonl", options.data, options.workers)
    write_text(options.out / "README.md", table(runs))
    sys.stdout.write(table(runs))


if __name__ == "__main__":
    main()
