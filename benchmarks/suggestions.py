"""What a suggested defense set is worth: ordinary poisoners, and a server that has seen no poison.

``python -m benchmarks.suggestions`` from the top folder writes
``results/benchmarks/suggestions.json`` after every run and, at the end, ``suggestions.md``; runs
that are in the file already are not made again. It needs the data sets (``DATADEFENSE_DATA``).

Of each task a run is attacked undefended; its last model is the suspect. Then a set is suggested
from what the server has (`datadefense defense-set suggest`), nobody says what the backdoor is, and
the same run is made again with that set.
"""

import json
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

HERE = Path(__file__).parent.parent / "results" / "benchmarks"
FILE, PAGE = HERE / "suggestions.json", HERE / "suggestions.md"
TASKS = {"digits-edge": 60, "cifar10-trigger": 45, "cifar10-southwest": 45, "sentiment-yl": 45}
"""Rounds of each task."""
METHODS = ("disagreement", "inversion")
NO_SET, TRUE_POISON = "undefended", "the attackers' kind"
FIGURES = (
    "ma_percent",
    "calm_ma_percent",
    "asr_percent",
    "excess_asr_percent",
    "final_asr_percent",
    "honest_excluded_percent",
    "attacker_weight_mean",
)
PROGRAM = (sys.executable, "-m", "datadefense")


def call(*words: str) -> str:
    return subprocess.run([*PROGRAM, *words], check=True, capture_output=True, text=True).stdout


def attacked(task: str, defense: str, out: Path, *more: str) -> dict[str, object]:
    call(
        *("run", "--task", task, "--attack", "data-poisoning", "--malicious", "0.2"),
        *("--defense", defense, "--rounds", str(TASKS[task]), "--seed", "0"),
        *("--out", str(out), *more),
    )
    summary = json.loads((out / "summary.json").read_text())
    return {name: summary[name] for name in FIGURES}


def suggested(task: str, method: str, suspect: Path, out: Path) -> str:
    """Suggest a set, and return what the program said of the candidates."""
    return call(
        *("defense-set", "suggest", str(out), "--task", task, "--method", method),
        *("--suspect", str(suspect), "--seed", "0"),
    )


def page(rows: list[dict[str, object]]) -> str:
    heads = ("task", "rounds", "the server's set", "ASR increase %", "at the end: ASR %", "MA %")
    heads = (*heads, "MA without attack %", "honest excluded %")
    keys = ("task", "rounds", "set", *FIGURES[3:5], *FIGURES[:2], FIGURES[5])
    lines = [
        "# What a suggested defense set is worth",
        "",
        "`python -m benchmarks.suggestions`: a fifth of the clients poisons a fifth of its data,",
        "one seed. The server has no poison and is not told what the backdoor is; it suggests some",
        "to itself from the last model of the undefended run, and the same run is made again.",
        "",
        f"| {' | '.join(heads)} |",
        "|" + "---|" * len(heads),
    ]
    for row in rows:
        found = [row[key] for key in keys]
        shown = (f"{value:.1f}" if isinstance(value, float) else str(value) for value in found)
        lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    rows = json.loads(FILE.read_text()) if FILE.exists() else []
    done = {(row["task"], row["set"]) for row in rows}

    def keep(task: str, name: str, found: dict[str, object], said: str = "") -> None:
        rows.append({"task": task, "rounds": TASKS[task], "set": name, **found, "said": said})
        FILE.write_text(json.dumps(rows, indent=1) + "\n")
        print(task, name, found, flush=True)

    for task in TASKS:
        names = (NO_SET, TRUE_POISON, *METHODS)
        if all((task, name) in done for name in names):
            continue
        with TemporaryDirectory() as folder:
            place = Path(folder)
            undefended = attacked(task, "fedavg", place / "suspect")
            if (task, NO_SET) not in done:
                keep(task, NO_SET, undefended)
            if (task, TRUE_POISON) not in done:
                keep(task, TRUE_POISON, attacked(task, "datadefense", place / "true"))
            for method in METHODS:
                if (task, method) in done:
                    continue
                said = suggested(task, method, place / "suspect", place / method)
                owned = ("--defense-set", str(place / method))
                found = attacked(task, "datadefense", place / f"{method}-run", *owned)
                keep(task, method, found, said)
    PAGE.write_text(page(rows))


if __name__ == "__main__":
    main()
