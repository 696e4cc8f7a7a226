"""Scores: what is measured of a round's model on a test set; one entry each, nothing elsewhere.

A new entry in `SCORES` is measured in every evaluated round and is then in ``rounds.jsonl``, in the
stored curves, in exported tables, in trackers, in the terminal and in a chart of the page.
"""

from collections.abc import Callable
from dataclasses import dataclass

from datadefense.core.examples import Examples
from datadefense.core.local_training import Trainer
from datadefense.simulation.federation import Federation


@dataclass(frozen=True, slots=True)
class Score:
    """A mean over the examples of a test set.

    Args:
        name: what it is stored under; it ends in its unit.
        label: its short name, for one line in a terminal.
        title: its name in words, for a chart.
        examples: which test set of a federation it is measured on.
        count: the sum over some examples of what it is the mean of, given a trainer that holds
            the model.
        factor: what the mean is multiplied with; 100 makes a percentage.
        unit: what it is then measured in.
        range: least and greatest value that a chart shows.
        floor: name of the summary's figure that says what it is without attack; empty: none.
    """

    name: str
    label: str
    title: str
    examples: Callable[[Federation], Examples]
    count: Callable[[Trainer, Examples], float] = Trainer.count_correct
    factor: float = 100.0
    unit: str = "%"
    range: tuple[float, float] = (0.0, 100.0)
    floor: str = ""

    def in_words(self, value: float) -> str:
        """Return a value as a terminal shows it: ``MA 91.2 %``."""
        return f"{self.label} {value:.1f} {self.unit}"


SCORES: tuple[Score, ...] = (
    Score("ma_percent", "MA", "Main accuracy", lambda federation: federation.test),
    Score(
        "asr_percent",
        "ASR",
        "Attack success rate",
        lambda federation: federation.backdoor_test,
        floor="asr_floor_percent",
    ),
)
"""Main accuracy and attack success rate: examples that the model gives the label of their set."""


def score_called(name: str) -> Score:
    """Return the score of that name."""
    return next(score for score in SCORES if score.name == name)
