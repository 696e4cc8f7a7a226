"""The audit trail: one line of JSON a round, with what became of each node's update, and why."""

import dataclasses
import itertools
import json
import os
import time
from pathlib import Path
from typing import Any

from datadefense.core.defend import Defended
from datadefense.core.foreign import plain_json
from datadefense.core.json_file import from_json
from datadefense.core.outcome_json import outcome_json
from datadefense.core.storage import write_atomically
from datadefense.flower.cost import Cost
from datadefense.flower.nodes import logger


def audit_line(index: int, result: Defended[Any], cost: Cost) -> dict[str, Any]:
    """Return what happened to each node in a round and what it cost, as plain values.

    Of a detector only what it marked is told: a set of thousands of examples would be a line of
    thousands of numbers a round.
    """
    line: dict[str, Any] = {
        "round": index,
        "time": time.time(),
        "cost": dataclasses.asdict(cost),
        "clients": [outcome_json(outcome) for outcome in result.outcomes],
        "report": result.report,
    }
    if (detector := result.detector) is not None:
        marked = {example_id: detector.suspicion.get(example_id) for example_id in detector.marked}
        line["detector"] = {"examples": len(detector.suspicion), "marked": marked}
    if result.theta:
        line["theta"] = result.theta
    plain: dict[str, Any] = plain_json(line)
    return plain


def append_line(path: Path, line: dict[str, Any]) -> None:
    """Add a line to the trail, on the disk before this returns."""
    text = json.dumps(line, allow_nan=False) + "\n"
    with path.open("a", encoding="utf-8") as trail:
        trail.write(text)
        trail.flush()
        os.fsync(trail.fileno())


def settle_trail(path: Path, last: int, *, begun: bool) -> None:
    """Bring the trail to the state of its run, which has seen ``last`` rounds if it has ``begun``.

    A run that was cut off can have written one line more than its state knows, perhaps not to its
    end: that round is run again, and its line goes. Any other line without a round of the state is
    of a run whose state is lost: the whole trail is then put aside, and nothing of it is deleted.
    """
    if not path.exists():
        return
    content = path.read_bytes()
    lines = content.removesuffix(b"\n").split(b"\n") if content else []
    numbers = [_round_of(line) for line in lines]
    if numbers and numbers[-1] == 0 and not content.endswith(b"\n"):
        numbers[-1] = last + 1  # cut off: the round that was being written
    strange = [place for place, number in enumerate(numbers, 1) if not 0 < number <= last + 1]
    if strange or (lines and not begun):
        aside = _free_name(path)
        write_atomically(aside, lambda part: _put(part, content))
        logger.warning(
            "%s has %d lines%s, the state beside it %d rounds: the trail as it was is now in %s",
            path,
            len(lines),
            f", of which line {strange[0]} is damaged or of another run" if strange else "",
            last,
            aside.name,
        )
    of_the_state = [line for line, number in zip(lines, numbers, strict=True) if 0 < number <= last]
    settled = b"".join(line + b"\n" for line in of_the_state)
    if settled != content:
        write_atomically(path, lambda part: _put(part, settled))


def _put(path: Path, content: bytes) -> None:
    path.write_bytes(content)


def _free_name(path: Path) -> Path:
    """Return audit.1.jsonl of audit.jsonl, or the first number that is not taken."""
    names = (path.with_name(f"{path.stem}.{n}{path.suffix}") for n in itertools.count(1))
    return next(name for name in names if not name.exists())


def _round_of(line: bytes) -> int:
    """Return the number of the round that a line is of; 0 if it is of none."""
    try:
        values = from_json(line)
    except ValueError:
        return 0
    number = values.get("round") if isinstance(values, dict) else None
    return number if type(number) is int else 0
