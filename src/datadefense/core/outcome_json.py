"""Outcomes as JSON and back: the shape that runs, the audit trail and reports store.

What there is none of is left out, so that a client that simply counted takes little room:
``{"client": 3, "verdict": "counted", "weight": 0.1, "num_examples": 60}``.
"""

from dataclasses import dataclass, field
from typing import Any

from datadefense.core.detector import DetectorRecord
from datadefense.core.foreign import shown
from datadefense.core.json_file import built
from datadefense.core.outcomes import ClientOutcome, Verdict
from datadefense.core.reasons import Reason


@dataclass(frozen=True, slots=True)
class _Stored:
    """An outcome as JSON has it."""

    client: int | str
    verdict: str
    weight: float | None = None
    num_examples: int | None = None
    evidence: dict[str, float] = field(default_factory=dict)
    reason: dict[str, Any] | None = None


def outcome_json(outcome: ClientOutcome) -> dict[str, Any]:
    """Return an outcome as JSON has it."""
    facts: dict[str, Any] = {"client": outcome.client, "verdict": str(outcome.verdict)}
    if outcome.weight is not None:
        facts["weight"] = outcome.weight
    if outcome.num_examples is not None:
        facts["num_examples"] = outcome.num_examples
    if outcome.evidence:
        facts["evidence"] = dict(outcome.evidence)
    if outcome.reason is not None:
        facts["reason"] = _reason_json(outcome.reason)
    return facts


def read_outcome(values: Any) -> ClientOutcome:
    """Return the outcome that JSON holds; ValueError if it holds none."""
    plain = built(_Stored, values)
    if plain.verdict not in set(Verdict):
        raise ValueError(f"verdict must be one of {', '.join(Verdict)}, got {shown(plain.verdict)}")
    return ClientOutcome(
        plain.client,
        Verdict(plain.verdict),
        plain.weight,
        plain.evidence,
        None if plain.reason is None else built(Reason, plain.reason),
        plain.num_examples,
    )


def detector_json(record: DetectorRecord) -> dict[str, Any]:
    """Return what a detector said as JSON has it."""
    return {"suspicion": dict(record.suspicion), "marked": list(record.marked)}


def read_detector(values: Any) -> DetectorRecord:
    """Return what a detector said, from JSON; ValueError if it holds none."""
    plain = built(DetectorRecord, values)
    return DetectorRecord(plain.suspicion, tuple(plain.marked))


def _reason_json(reason: Reason) -> dict[str, Any]:
    facts = {"value": reason.value, "limit": reason.limit, "text": reason.text or None}
    return {"code": reason.code} | {
        name: value for name, value in facts.items() if value is not None
    }
