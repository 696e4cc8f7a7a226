"""The audit trail: one line of JSON a round, with each node's verdict, weight and features."""

import dataclasses
import json
import os
import time
from pathlib import Path
from typing import Any

from datadefense.flower.cost import Cost
from datadefense.gate import Admission
from datadefense.round import Aggregate
from datadefense.storage import write_text
from datadefense.verdicts import excluded


def audit_line(
    index: int, admission: Admission, result: Aggregate[Any], cost: Cost
) -> dict[str, Any]:
    """Return what happened to each node in a round and what it cost, as plain values."""
    ids = admission.round.client_ids if admission.round is not None else ()
    counts = admission.round.num_examples.tolist() if admission.round is not None else []
    weights = None if result.weights is None else result.weights.tolist()
    reasons = result.report.get("reasons", [""] * len(ids))
    out = [] if admission.round is None else excluded(result, admission.round)
    nodes: list[dict[str, Any]] = []
    for row, node in enumerate(ids):
        weight = None if weights is None else weights[row]
        features = {name: float(values[row]) for name, values in result.evidence.items()}
        verdict = "excluded" if out[row] else "counted"
        nodes.append(
            {
                "node": node,
                "verdict": verdict,
                "weight": weight,
                "examples": counts[row],
                "features": features,
                "reason": reasons[row],
            }
        )
    nodes += [
        {"node": one.client_id, "verdict": "rejected", "reason": one.reason}
        for one in admission.rejected
    ]
    rest = {
        key: value for key, value in result.report.items() if key not in ("reasons", "rejected")
    }
    return {
        "round": index,
        "time": time.time(),
        "cost": dataclasses.asdict(cost),
        "nodes": nodes,
        "report": rest,
    }


def append_line(path: Path, line: dict[str, Any]) -> None:
    """Add a line to the trail, on the disk before this returns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a", encoding="utf-8") as trail:
        trail.write(json.dumps(line) + "\n")
        trail.flush()
        os.fsync(trail.fileno())


def drop_after(path: Path, last: int) -> None:
    """Take out lines of rounds after ``last``, which will be run again, and one that is cut off."""
    if not path.exists():
        return
    lines = path.read_text(encoding="utf-8").splitlines()
    kept = [line for line in lines if 0 < _round_of(line) <= last]
    if kept != lines:
        write_text(path, "".join(line + "\n" for line in kept))


def _round_of(line: str) -> int:
    try:
        return int(json.loads(line)["round"])
    except (ValueError, KeyError, TypeError):
        return 0
