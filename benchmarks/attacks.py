"""Do the attacks work? Each setup undefended, with and without an attack, over several seeds.

    python -m benchmarks.attacks --data DIR [--setups A,B] [--attacks none,pgd] [--seeds 3]

Runs are appended to ``results/attacks/runs.jsonl`` (one that is there already is not repeated) and
the table ``results/attacks/README.md`` is made from all of them.
"""

import argparse
import dataclasses
import json
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from datadefense.experiments.experiment import Experiment
from datadefense.experiments.run import start
from datadefense.experiments.setups import SETUPS, experiment
from datadefense.simulation.pool import Pool
from datadefense.storage import write_text

ATTACKS = ("none", "pgd", "pgd-replacement")


def configuration(setup: str, attack: str, seed: int) -> Experiment:
    """Return the experiment as it is configured now; runs of an earlier one are not shown."""
    changes = {"attack": attack, "seed": str(seed), "defense": "fedavg"}
    return experiment(setup, "cpu", changes)


def run_one(setup: str, attack: str, seed: int, data: Path | None, workers: int) -> dict[str, Any]:
    """Run fedavg at cpu scale and return its summary and the key of its configuration."""
    configured = configuration(setup, attack, seed)
    with tempfile.TemporaryDirectory() as folder:
        run = start(configured, Path(folder) / "run", data)
        with Pool(run.federation, workers) as pool:
            for record in run.rounds(pool):
                if record.asr_percent is not None:
                    print(
                        f"{setup} {attack} {seed}: round {record.round} "
                        f"MA {record.ma_percent:.1f} ASR {record.asr_percent:.1f}",
                        flush=True,
                    )
            summary = run.finish(pool)
    return {"key": configured.key(), **dataclasses.asdict(summary)}


def table(runs: list[dict[str, Any]]) -> str:
    """Return the table of all runs: means over seeds, and the least excess of any seed."""
    groups: dict[tuple[str, str], list[dict[str, Any]]] = defaultdict(list)
    for run in runs:
        if run["key"] == configuration(run["setup"], run["attack"], run["seed"]).key():
            groups[run["setup"], run["attack"]].append(run)
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
            if not (group := groups.get((setup, attack))):
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
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--setups", default=",".join(SETUPS))
    parser.add_argument("--attacks", default=",".join(ATTACKS))
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path("results/attacks"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    options.out.mkdir(parents=True, exist_ok=True)
    store = options.out / "runs.jsonl"
    runs = [json.loads(line) for line in store.read_text().splitlines()] if store.exists() else []
    known = {run["key"] for run in runs}
    for seed in range(options.seeds):
        for setup in options.setups.split(","):
            for attack in options.attacks.split(","):
                if configuration(setup, attack, seed).key() in known:
                    continue
                runs.append(run_one(setup, attack, seed, options.data, options.workers))
                with store.open("a") as lines:
                    lines.write(json.dumps(runs[-1]) + "\n")
                write_text(options.out / "README.md", table(runs))
    write_text(options.out / "README.md", table(runs))
    sys.stdout.write(table(runs))


if __name__ == "__main__":
    main()
