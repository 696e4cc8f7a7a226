"""Our rules beside ByzFL's, which is what a researcher would pick from the package index.

    pip install --no-deps --target /tmp/byzfl byzfl
    python -m benchmarks.byzfl_rules --byzfl /tmp/byzfl

from the top folder writes ``results/benchmarks/byzfl.md`` and ``byzfl.json``. ByzFL imports
torchvision and seaborn, which its aggregators do not use; mocks stand in for them. Each rule gets
the same matrix and the same f, and both results are compared before anything is timed; rules that
compute something else (ByzFL's geometric median stops after three steps) say by how much they
differ. Times are the medians of calls in turns.
"""

import argparse
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from importlib.metadata import distributions
from pathlib import Path
from typing import Any
from unittest.mock import MagicMock

from torch import Tensor

from benchmarks.aggregation import Case, make_round
from benchmarks.measure import Contender, others_share, race
from datadefense.core.server import Server
from datadefense.defenses import create
from datadefense.runs.compute_choice import processor

CASES = (Case(10, 431_080), Case(100, 431_080))
RULES = {
    "median": ("Median", False),
    "trimmed-mean": ("TrMean", True),
    "krum": ("Krum", True),
    "multi-krum": ("MultiKrum", True),
    "rfa": ("GeometricMedian", False),
}
"""Our name, ByzFL's, and whether the rule is told f."""
GOAL = 10.0
"""Times as fast that we want to be."""


def load(folder: Path) -> Any:
    """Import ByzFL's aggregators from a folder, with mocks of what they do not use."""
    for name in ("torchvision", "torchvision.datasets", "torchvision.transforms", "seaborn"):
        sys.modules.setdefault(name, MagicMock())
    sys.path.insert(0, str(folder))
    from byzfl.aggregators import aggregators  # type: ignore[import-not-found] # noqa: PLC0415

    return aggregators


def compared(case: Case, rule: str, theirs: Callable[[Tensor], Tensor]) -> dict[str, Any]:
    """Time a rule of ours and ByzFL's on the same matrix, and compare what they give."""
    round = make_round(case)
    settings = {"num_malicious": str(case.num_malicious(rule))} if RULES[rule][1] else {}
    ours = create(rule, settings)
    state = ours.init(Server(), round.global_params)

    def own() -> Tensor:
        return ours.aggregate(state, round, Server()).params - round.global_params

    differs = float((own() - theirs(round.updates)).norm() / own().norm())
    calls = [
        Contender("ours", lambda: round.updates.sum(0), lambda _: own()),
        Contender("theirs", lambda: round.updates.sum(0), lambda _: theirs(round.updates)),
    ]
    times = race(calls, 5)
    ours_ms, theirs_ms = times["ours"].median_ms, times["theirs"].median_ms
    return {
        "rule": rule,
        "clients": case.clients,
        "dim": case.dim,
        "ours_ms": ours_ms,
        "theirs_ms": theirs_ms,
        "times": theirs_ms / ours_ms,
        "differs": differs,
    }


def page(facts: dict[str, Any], rows: list[dict[str, Any]]) -> str:
    lines = ["# Our rules beside ByzFL's", "", *(f"- {k}: {v}" for k, v in facts.items()), ""]
    lines += [
        "Same matrix, same f, medians of calls in turns. Differs: length of the difference of the",
        "two results beside our result; ByzFL's geometric median stops after three steps.",
        "",
        "| rule | clients | ours, ms | ByzFL, ms | times as fast | differs |",
        "|---|---:|---:|---:|---:|---:|",
    ]
    for row in rows:
        shown = f"{row['times']:.1f}" + ("" if row["times"] >= GOAL else " (below ten)")
        lines.append(
            f"| {row['rule']} | {row['clients']} | {row['ours_ms']:.1f} | {row['theirs_ms']:.1f} "
            f"| {shown} | {row['differs']:.1e} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.byzfl_rules", description=__doc__)
    parser.add_argument("--byzfl", type=Path, required=True, help="folder it was installed into")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    options = parser.parse_args()
    theirs, watch = load(options.byzfl), others_share()
    rows = []
    for case in CASES:
        for rule, (name, told) in RULES.items():
            kind = getattr(theirs, name)
            rows.append(compared(case, rule, kind(case.num_malicious(rule)) if told else kind()))
            print(rows[-1], flush=True)
    (found,) = {one.version for one in distributions(path=[str(options.byzfl)])}
    share = watch()
    facts = {
        "command": shlex.join(["python", *sys.orig_argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "processor": processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "byzfl": found,
        "other processes": "an unknown share" if share is None else f"{share:.0%} of the cores",
    }
    options.out.mkdir(parents=True, exist_ok=True)
    (options.out / "byzfl.json").write_text(json.dumps({**facts, "rules": rows}, indent=1) + "\n")
    (options.out / "byzfl.md").write_text(page(facts, rows))


if __name__ == "__main__":
    main()
