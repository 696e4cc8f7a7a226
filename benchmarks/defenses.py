"""Do the defenses hold? DataDefense and others against the attacks, over several seeds.

    python -m benchmarks.defenses --data DIR [--cases A,B] [--defenses A,B] [--seeds 3]

Runs are appended to ``results/defenses/runs.jsonl`` (one that is there already is not repeated) and
the table ``results/defenses/README.md`` is made from all of them. A case is a setup, an attack and
what is changed in the configuration.
"""

import sys
from collections.abc import Mapping
from pathlib import Path
from statistics import fmean
from typing import Any

import torch

from benchmarks.attacks import configuration
from benchmarks.grid import grid_parser, read_runs, run_missing
from datadefense.defenses import DEFENSES
from datadefense.experiments.experiment import Experiment
from datadefense.experiments.setups import SETUPS, experiment
from datadefense.storage import write_text

MOST_SEEDS = 20
PAPER = ("digits-edge", *(setup for setup in SETUPS if setup.startswith(("cifar", "sent"))))
CASES: Mapping[str, tuple[str, Mapping[str, str]]] = {
    **{
        f"{setup} {attack}": (setup, {"attack": attack})
        for setup in PAPER
        for attack in ("pgd-replacement", "pgd")
    },
    **{
        f"digits-edge {attack} {words}": ("digits-edge", {"attack": attack, **changes})
        for attack in ("pgd-replacement", "pgd")
        for words, changes in (
            ("every-round", {"period": "1"}),
            ("pool-20%", {"schedule": "fixed-pool", "pool": "10"}),
            ("pool-40%", {"schedule": "fixed-pool", "pool": "20"}),
        )
    },
    "digits-edge adaptive": ("digits-edge", {"attack": "adaptive"}),
    "digits-edge adaptive every-round": ("digits-edge", {"attack": "adaptive", "period": "1"}),
    "digits-edge none": ("digits-edge", {"attack": "none"}),
    "cifar10-trigger adaptive": ("cifar10-trigger", {"attack": "adaptive"}),
}
"""Cases by name."""


def configured(case: str, defense: str, seed: int) -> Experiment:
    """Return the experiment as it is configured now; runs of an earlier one are not shown."""
    setup, changes = CASES[case]
    return experiment(setup, "cpu", {**changes, "defense": defense, "seed": str(seed)})


def table(runs: dict[str, dict[str, Any]], calm: dict[str, dict[str, Any]]) -> str:
    """Return the table: means over seeds, the worst seed, and the accuracy beside fedavg's."""
    lines = [
        "# Do the defenses hold?",
        "",
        "cpu scale; the data of attackers, of the defense set and of the test are disjoint. Means",
        "over seeds of means over the last 10 evaluated rounds. Excess: success rate above that of",
        "fedavg when nobody attacks, same seed; worst: of any seed. dMA: accuracy less that of",
        "fedavg without an attack, same seeds. Made by `python -m benchmarks.defenses --data DIR`.",
        "",
        "| case | defense | seeds | MA % | dMA | ASR % | excess % | worst % | attacker's weight "
        "| honest excluded % | detector hits % | s/round |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for case, (setup, _) in CASES.items():
        for defense in DEFENSES:
            keys = {seed: configured(case, defense, seed).key() for seed in range(MOST_SEEDS)}
            found = {seed: runs[key] for seed, key in keys.items() if key in runs}
            if not found:
                continue
            group = list(found.values())
            plain = [
                run["ma_percent"] - calm[key]["ma_percent"]
                for seed, run in found.items()
                if (key := configuration(setup, "none", seed).key()) in calm
            ]
            excess = [run["excess_asr_percent"] for run in group]
            cells = [
                case,
                defense,
                str(len(group)),
                _mean(group, "ma_percent"),
                f"{fmean(plain):+.1f}" if len(plain) == len(group) else "",
                _mean(group, "asr_percent"),
                f"{fmean(excess):.1f}",
                f"{max(excess):.1f}",
                _mean(group, "attacker_weight_mean", 3),
                _mean(group, "honest_excluded_percent"),
                _mean(group, "detector_hits_percent"),
                _mean(group, "seconds_per_round", 2),
            ]
            lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _mean(group: list[dict[str, Any]], key: str, digits: int = 1) -> str:
    values = [run[key] for run in group if run[key] is not None]
    return f"{fmean(values):.{digits}f}" if len(values) == len(group) else ""


def main() -> None:
    """Run what is missing and write the table."""
    parser = grid_parser(__doc__, "results/defenses")
    parser.add_argument("--cases", default=",".join(CASES))
    parser.add_argument("--defenses", default="datadefense")
    options = parser.parse_args()
    torch.set_num_threads(1)
    wanted = (
        configured(case, defense, seed)
        for seed in range(options.seeds)
        for case in options.cases.split(",")
        for defense in options.defenses.split(",")
    )
    runs = run_missing(wanted, options.out / "runs.jsonl", options.data, options.workers)
    text = table(runs, read_runs(Path("results/attacks/runs.jsonl")))
    write_text(options.out / "README.md", text)
    sys.stdout.write(text)


if __name__ == "__main__":
    main()
