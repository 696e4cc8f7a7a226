"""Rounds as version 0.1 stored them, in columns with reasons as text: read as rounds of today."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from datadefense.core.detector import DetectorRecord
from datadefense.core.foreign import sanitize, shown
from datadefense.core.json_file import built
from datadefense.core.outcomes import ClientOutcome, Verdict
from datadefense.core.reasons import REJECTED, Reason, plain_reason
from datadefense.simulation.rounds import RoundRecord


@dataclass(frozen=True, slots=True)
class OldRound:
    """A line of version 0.1; what the report holds by a known name has a place of its own today."""

    round: int
    clients: list[int | str]
    attackers: list[int | str]
    weights: list[float | None] | None
    evidence: dict[str, list[float | None]]
    report: dict[str, Any]
    ma_percent: float | None
    asr_percent: float | None
    seconds: dict[str, float] = field(default_factory=dict)
    attack: dict[str, float] = field(default_factory=dict)


MOVED = ("clients", "rejected", "reasons", "gamma", "marked", "theta")
"""What of an old report has a place of its own today."""


def is_old(values: Any) -> bool:
    """Say whether a line is of version 0.1."""
    return type(values) is dict and "evidence" in values


def read_old(values: Any, examples: Sequence[str]) -> RoundRecord:
    """Return an old line as a round of today; ValueError if it is none.

    ``examples`` are the ids of the defense set in its order; where they are not known, an example
    is called by its place.
    """
    old = built(OldRound, values)
    columns = dict(old.evidence) | ({} if old.weights is None else {"weights": old.weights})
    for name, column in columns.items():
        if len(column) != len(old.clients):
            raise ValueError(
                f"{shown(name, 60)} has {len(column)} values, expected one for each of "
                f"{len(old.clients)} clients"
            )
    scores = {"ma_percent": old.ma_percent, "asr_percent": old.asr_percent}
    return RoundRecord(
        round=old.round,
        outcomes=(*_admitted(old), *_rejected(old)),
        attackers=old.attackers,
        scores={name: value for name, value in scores.items() if value is not None},
        report={name: value for name, value in old.report.items() if name not in MOVED},
        detector=_detector(old, examples),
        theta=_theta(old),
        seconds=old.seconds,
        attack=old.attack,
    )


def _admitted(old: OldRound) -> list[ClientOutcome]:
    said = old.report.get("reasons")
    if not isinstance(said, list) or len(said) != len(old.clients):
        said = [""] * len(old.clients)
    outcomes: list[ClientOutcome] = []
    for row, client in enumerate(old.clients):
        columns = {name: values[row] for name, values in old.evidence.items()}
        evidence = {name: value for name, value in columns.items() if value is not None}
        weight = None if old.weights is None else old.weights[row]
        reason = _reason(str(said[row]), evidence) if said[row] else None
        out = weight == 0 or (old.weights is None and evidence.get("chosen") == 0)
        if out and reason is None:
            reason = Reason("no_weight")
        verdict = (
            Verdict.EXCLUDED
            if out
            else Verdict.REDUCED
            if reason is not None
            else Verdict.VOTED
            if old.weights is None
            else Verdict.COUNTED
        )
        outcomes.append(ClientOutcome(client, verdict, weight, evidence, reason))
    return outcomes


def _reason(text: str, evidence: dict[str, float]) -> Reason:
    """Return ``moved_far 1.2`` as the name of that evidence and its value, else the text."""
    name, _, value = text.partition(" ")
    if name in evidence and f"{evidence[name]:.3g}" == value:
        return plain_reason(Reason(name, evidence[name], text=f"{name.replace('_', ' ')} {value}"))
    return plain_reason(Reason("told", text=text))


def _rejected(old: OldRound) -> list[ClientOutcome]:
    said = old.report.get("rejected")
    return [
        ClientOutcome(
            rejection["client"]
            if isinstance(rejection["client"], int | str)
            else shown(rejection["client"]),
            Verdict.REJECTED,
            reason=Reason(REJECTED, text=sanitize(str(rejection["reason"]))),
        )
        for rejection in (said if isinstance(said, list) else [])
        if isinstance(rejection, dict) and {"client", "reason"} <= rejection.keys()
    ]


def _detector(old: OldRound, examples: Sequence[str]) -> DetectorRecord | None:
    gamma, marked = _numbers(old, "gamma"), _numbers(old, "marked")
    if not gamma:
        return None
    ids = list(examples) if len(examples) == len(gamma) else [str(n) for n in range(len(gamma))]
    places = [int(place) for place in marked if 0 <= place < len(ids)]
    return DetectorRecord(dict(zip(ids, gamma, strict=True)), tuple(ids[place] for place in places))


def _theta(old: OldRound) -> dict[str, float | None]:
    """Return theta by name: it was that of the last pieces of evidence."""
    values = _numbers(old, "theta")
    names = list(old.evidence)[-len(values) :] if values else []
    return dict(zip(names, values, strict=False))


def _numbers(old: OldRound, name: str) -> list[float]:
    """Return a list of numbers from the report; empty if it has none of that name."""
    values = old.report.get(name)
    if isinstance(values, list) and all(isinstance(value, int | float) for value in values):
        return values
    return []
