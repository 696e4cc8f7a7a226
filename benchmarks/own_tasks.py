"""Two tasks of one's own under a fifth of malicious clients: who keeps the backdoor out.

``python -m benchmarks.own_tasks`` from the top folder writes ``results/benchmarks/own-tasks.json``.
"""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

from datadefense.runs.configure import configure
from datadefense.runs.run import start
from datadefense.simulation.pool import Pool

FILE = Path(__file__).parent.parent / "results" / "benchmarks" / "own-tasks.json"
TASKS = ("examples.tumours:task", "examples.small_digits:task")
DEFENSES: dict[str, dict[str, str]] = {
    "fedavg": {},
    "multi-krum": {"defense.num_malicious": "2"},  # of ten in a round, on average
    "datadefense": {},
}
FIGURES = ("ma_percent", "asr_percent", "asr_floor_percent", "attacker_weight_mean")
SEEDS = range(7)
SHORT = {"warm.epochs": "10"}
"""A first model that has not learned its task yet."""


def figures(task: str, defense: str, seed: int, changes: dict[str, str]) -> dict[str, object]:
    wanted = {"attack": "data-poisoning", "malicious": "0.2", "rounds": "20", "seed": str(seed)}
    experiment = configure(task, "cpu", wanted | {"defense": defense} | changes)
    with (
        TemporaryDirectory() as folder,
        start(experiment, Path(folder) / "run") as run,
        Pool(run.federation, 0) as pool,
    ):
        list(run.rounds(pool))
        summary = run.finish(pool)
    found = {name: round(getattr(summary, name) or 0.0, 3) for name in FIGURES}
    return {"task": task, "defense": defense, "seed": seed, "changes": changes, **found}


def main() -> None:
    rows = []
    for task in TASKS:
        cases = [(name, seed, more) for name, more in DEFENSES.items() for seed in SEEDS]
        cases += [("datadefense", seed, SHORT) for seed in SEEDS if task == TASKS[0]]
        for defense, seed, changes in cases:
            rows.append(figures(task, defense, seed, changes))
            print(rows[-1], flush=True)
    FILE.write_text(json.dumps(rows, indent=1) + "\n")


if __name__ == "__main__":
    main()
