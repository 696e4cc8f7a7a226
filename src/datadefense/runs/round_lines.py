"""Rounds as lines of ``rounds.jsonl``, and back."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from datadefense.core.json_file import built, to_json
from datadefense.core.outcome_json import (
    detector_json,
    outcome_json,
    read_detector,
    read_outcome,
)
from datadefense.runs.old_rounds import is_old, read_old
from datadefense.simulation.rounds import RoundRecord


@dataclass(frozen=True, slots=True)
class _Line:
    """A round as JSON has it."""

    round: int
    clients: list[dict[str, Any]]
    attackers: list[int | str]
    scores: dict[str, float]
    report: dict[str, Any]
    seconds: dict[str, float]
    detector: dict[str, Any] | None = None
    theta: dict[str, float | None] = field(default_factory=dict)
    attack: dict[str, float] = field(default_factory=dict)


def round_line(record: RoundRecord) -> str:
    """Return a round as one line of JSON, with its end."""
    facts: dict[str, Any] = {
        "round": record.round,
        "clients": [outcome_json(outcome) for outcome in record.outcomes],
        "attackers": list(record.attackers),
        "scores": dict(record.scores),
        "report": dict(record.report),
        "seconds": dict(record.seconds),
    }
    if record.detector is not None:
        facts["detector"] = detector_json(record.detector)
    if record.theta:
        facts["theta"] = dict(record.theta)
    if record.attack:
        facts["attack"] = dict(record.attack)
    return to_json(facts) + "\n"


def read_round(values: Any, examples: Sequence[str] = ()) -> RoundRecord:
    """Return the round that a line holds; ValueError if it holds none.

    ``examples`` are the ids of the defense set, which lines of older versions need.
    """
    if is_old(values):
        return read_old(values, examples)
    line = built(_Line, values)
    return RoundRecord(
        round=line.round,
        outcomes=tuple(read_outcome(client) for client in line.clients),
        attackers=line.attackers,
        scores=line.scores,
        report=line.report,
        detector=None if line.detector is None else read_detector(line.detector),
        theta=line.theta,
        seconds=line.seconds,
        attack=line.attack,
    )
