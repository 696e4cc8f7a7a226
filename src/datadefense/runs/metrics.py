"""Figures of a round: what a tracker is told of it and what a table has of it."""

from datadefense.runs.record_fields import rejected
from datadefense.simulation.rounds import RoundRecord

PARTS = ("training", "attack", "defense", "evaluation")
"""Parts of a round whose seconds are known."""
NAMES = (
    "ma_percent",
    "asr_percent",
    "clients",
    "attackers",
    "attackers_weight",
    "excluded",
    "rejected",
    *(f"seconds_{part}" for part in PARTS),
)
"""The figures, in the order of a table's columns."""


def figures_of(record: RoundRecord) -> dict[str, float]:
    """Return the figures that a round has; one that was not evaluated has no scores.

    ``attackers_weight`` is the weight of all attackers together (one that was rejected has none),
    ``excluded`` the clients with weight 0; a rule without weights has neither.
    """
    figures: dict[str, float] = {
        "clients": len(record.clients),
        "attackers": len(record.attackers),
        "rejected": len(rejected(record)),
    }
    if record.ma_percent is not None:
        figures["ma_percent"] = record.ma_percent
    if record.asr_percent is not None:
        figures["asr_percent"] = record.asr_percent
    if record.weights is not None:
        weights = record.known_weights()
        figures["attackers_weight"] = sum(weights.get(one, 0.0) for one in record.attackers)
        figures["excluded"] = sum(weight == 0 for weight in record.weights)
    figures |= {f"seconds_{part}": record.seconds[part] for part in PARTS if part in record.seconds}
    return figures
