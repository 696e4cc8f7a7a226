"""Repeat stored runs with the code as it is, and say which give the same figures to the last digit.

``python -m benchmarks.repeat_stored [KEY ...]`` from the top folder writes
``results/benchmarks/repeated.json``. Without keys: ten short runs of the embedded digits, of as
many defenses and attacks as there are, whose accuracy without attack is stored with them: those
are of an AMD. On another kind of processor the first model differs, and with it the last digits.
"""

import json
import sys
from collections import Counter
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
    """Return keys of short runs on the digits, in turns of the defense and attack seen least."""
    left = {
        key: result.summary
        for key, result in read_store(RESULTS / "runs.jsonl").items()
        if result.summary.setup == "digits-edge"
        and result.summary.rounds <= MOST_ROUNDS
        and result.summary.calm_ma_percent is not None
        and result.summary.defense != "datadefense"  # whose algorithm is new
    }
    found: list[str] = []
    seen: Counter[str] = Counter()
    while left and len(found) < COUNT:
        key = min(left, key=lambda one: seen[left[one].defense] + seen[left[one].attack])
        seen.update((left[key].defense, left.pop(key).attack))
        found.append(key)
    return found


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
