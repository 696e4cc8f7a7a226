"""Precision: do runs in bf16 come to the figures of runs in float32?"""

from collections.abc import Iterator

from datadefense.studies.study import Point, Study, point_of

PRECISIONS = ("float32", "bf16")
CASES = {
    "digits-edge": {"rounds": "30"},
    "cifar10-trigger": {"rounds": "45"},
    "sentiment-yl": {"rounds": "45"},
}


def _precision(scale: str) -> Iterator[Point]:
    for setup, length in CASES.items():
        for defense in ("fedavg", "datadefense"):
            for precision in PRECISIONS:
                changes = {
                    **length,
                    "attack": "data-poisoning",
                    "malicious": "0.2",
                    "defense": defense,
                    "training_precision": precision,
                    "server_precision": precision,
                }
                yield point_of(scale, (setup, defense, precision), setup, changes)


PRECISION = Study(
    "precision",
    "do runs in bf16 come to the same figures as in float32?",
    ("setup", "defense", "precision of clients and server"),
    _precision,
)
"""Ordinary poisoners, a fifth of the clients."""
