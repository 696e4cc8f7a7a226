"""Metrics of a round: what a tracker is told of it and what an exported table has of it.

One entry each: a score of the model (add those to `datadefense.simulation.scores`), or something
that a `RoundRecord` tells (add those here).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from datadefense.core.outcomes import Verdict
from datadefense.simulation.rounds import RoundRecord
from datadefense.simulation.scores import SCORES

PARTS = ("training", "attack", "defense", "evaluation")
"""Parts of a round whose seconds are known."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One number of a round.

    Args:
        name: of its column and in a tracker.
        of: how it is told from a round; None where that round has none.
    """

    name: str
    of: Callable[[RoundRecord], float | None]


def attackers_weight(record: RoundRecord) -> float | None:
    """Return the weight of all attackers together; None for a rule without weights."""
    if record.weights is None:
        return None
    weights = record.known_weights()
    return sum(weights.get(attacker, 0.0) for attacker in record.attackers)


def excluded(record: RoundRecord) -> int | None:
    """Return how many clients have weight 0; None for a rule without weights."""
    return None if record.weights is None else sum(weight == 0 for weight in record.weights)


def _score(name: str, record: RoundRecord) -> float | None:
    return record.scores.get(name)


def _seconds(part: str, record: RoundRecord) -> float | None:
    return record.seconds.get(part)


METRICS: tuple[Metric, ...] = (
    *(Metric(score.name, partial(_score, score.name)) for score in SCORES),
    Metric("clients", lambda record: len(record.clients)),
    Metric("attackers", lambda record: len(record.attackers)),
    Metric("attackers_weight", attackers_weight),
    Metric("excluded", excluded),
    Metric("rejected", lambda record: record.count(Verdict.REJECTED)),
    *(Metric(f"seconds_{part}", partial(_seconds, part)) for part in PARTS),
)
"""The metrics, in the order of a table's columns."""
NAMES = tuple(metric.name for metric in METRICS)


def figures_of(record: RoundRecord) -> dict[str, float]:
    """Return the metrics that a round has; one that was not evaluated has no scores."""
    found = {metric.name: metric.of(record) for metric in METRICS}
    return {name: value for name, value in found.items() if value is not None}


def scores_in_words(record: RoundRecord) -> list[str]:
    """Return the scores of a round as a terminal shows them: ``MA 91.2 %``."""
    known = [(score, record.scores.get(score.name)) for score in SCORES]
    return [score.in_words(value) for score, value in known if value is not None]
