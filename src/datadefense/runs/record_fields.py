"""What a round's report tells of its own accord, where it has the form that a page knows.

A defense may report anything under any name; what is of another form is not shown.
"""

from datadefense.core.foreign import sanitize
from datadefense.simulation.rounds import RoundRecord


def numbers(record: RoundRecord, name: str) -> list[float]:
    """Return a list of numbers from the report; empty if it has none of that name."""
    values = record.report.get(name)
    if isinstance(values, list) and all(isinstance(value, int | float) for value in values):
        return values
    return []


def reasons(record: RoundRecord) -> list[str]:
    """Return why each client lost weight, in one short line each; empty where it did not."""
    said = record.report.get("reasons")
    if not isinstance(said, list) or len(said) != len(record.clients):
        return [""] * len(record.clients)
    return [sanitize(str(reason)) for reason in said]


def rejected(record: RoundRecord) -> list[tuple[str, str]]:
    """Return whom the gate turned away, and why."""
    said = record.report.get("rejected")
    if not isinstance(said, list):
        return []
    return [
        (str(one["client"]), sanitize(str(one["reason"])))
        for one in said
        if isinstance(one, dict) and {"client", "reason"} <= one.keys()
    ]
