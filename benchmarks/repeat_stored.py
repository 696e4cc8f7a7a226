"""Repeat stored runs with the code as it is, and say which give the same figures to the last digit.

``python -m benchmarks.repeat_stored [KEY ...]`` from the top folder writes
``results/benchmarks/repeated.json``. Without keys: ten short runs of the embedded digits with ten
different defenses and as many attacks as were stored with them. Runs of another kind of processor
differ in their last digits, since the first model does.
"""

import json
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from datadefense.runs.compute_choice import processor
from datadefense.runs.config import experiment_of
from datadefense.studies.grid import run_one
from datadefense.studies.store import read_store

RESULTS = Path(__file__).parent.parent / "results"
FIGURES = ("ma_percent", "asr_percent", "final_asr_percent", "attacker_weight_mean")
COUNT, MOST_ROUNDS = 10, 30


def chosen() -> list[str]:
    """Return keys of short runs on the digits: a new defense each, and a new attack if there is."""
    results = [
        (key, result)
        for key, result in read_store(RESULTS / "runs.jsonl").items()
        if result.summary.setup == "digits-edge" and result.summary.rounds <= MOST_ROUNDS
    ]
    found: dict[str, str] = {}
    attacks: set[str] = set()
    for fresh in (True, False):
        for key, result in results:
            defense, attack = result.summary.defense, result.summary.attack
            if len(found) < COUNT and defense not in found and not (fresh and attack in attacks):
                found[defense] = key
                attacks.add(attack)
    return list(found.values())


def main() -> None:
    store = read_store(RESULTS / "runs.jsonl")
    rows = []
    for key in sys.argv[1:] or chosen():
        stored = store[key]
        experiment = experiment_of(stored.config)
        with TemporaryDirectory() as folder:
            again = run_one(experiment, Path(folder) / "run", None).summary
        before, now = (
            {name: getattr(summary, name) for name in FIGURES}
            for summary in (stored.summary, again)
        )
        rows.append(
            {
                "key": key,
                "attack": again.attack,
                "defense": again.defense,
                "seed": again.seed,
                "rounds": again.rounds,
                "same": before == now,
                "stored": before,
                "now": now,
            }
        )
        print(rows[-1], flush=True)
    record = {"processor": processor(), "runs": rows}
    path = RESULTS / "benchmarks" / "repeated.json"
    path.write_text(json.dumps(record, indent=1) + "\n")


if __name__ == "__main__":
    main()
