"""Reasons: why a client lost weight or was turned away, as data, and the same in words."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from datadefense.core.foreign import sanitize

WORDS: Mapping[str, str] = {
    "angle": "cosine distance {value} from the nearest of the majority, which {limit} connects",
    "cosine": "cosine {value} with the server's own step, must be above {limit}",
    "filter_weight": "the filter left it {value} of a weight, of {limit}",
    "from_center": "{value} away from the last aggregate, pulled as if {limit} away",
    "importance": "its importance theta . s is {value}, must be above {limit}",
    "known_poison": "knows {value} % of the sure poison, the model may know {limit} %",
    "krum_score": "Krum score {value}, the chosen have at most {limit}",
    "learned_poison": "learned {value} % of the poison",
    "loss_not_finite": "its loss on some example is not finite, or huge",
    "metrics_score": "score of its distances {value}, the kept have at most {limit}",
    "model_kept": "the model was kept: nobody counted",
    "moved_far": "moved {value} times as far as is free of blame",
    "no_weight": "the rule gave it no weight",
    "norm": "norm {value}, clipped to {limit}",
    "norm_high": "norm {value} times the median, must be below {limit}",
    "norm_low": "norm {value} times the median, must be above {limit}",
    "off_direction": "angle with the model {value} deviations off the median, must be < {limit}",
    "off_signs": "signs {value} standard deviations off the median, must be < {limit}",
    "repeated_krum": "not chosen by repeated Krum: score {value}, the chosen have about {limit}",
    "sign_shares": "{value} of its values are positive, in the largest cluster about {limit}",
    "similarity": "moves like another client: similarity {value}, free of blame up to {limit}",
    "spread": "has {value} of the spread along the main direction, the kept at most {limit}",
    "worse_on_clean": "got worse on clean examples: its loss rose by {value} % more than is usual",
}
"""What the codes of our own rules mean; a code that is not here is shown as it is."""
REJECTED = "rejected"
"""The code of what the gate turns away; the gate's own words are the reason's text."""
LONGEST = 300
"""Most characters of a reason's own text."""
DIGITS = 6
"""Significant digits of a number that is kept to be looked at."""


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a client has less than its share.

    Args:
        code: what the rule looked at, as one short name; where it is the name of a piece of
            evidence, the page shows that first.
        value: what it found, if that is a number.
        limit: what the value is held against: a bound, or what is usual.
        text: words of its own, which are then said instead of those for the code.
    """

    code: str
    value: float | None = None
    limit: float | None = None
    text: str = ""

    def __str__(self) -> str:
        return in_words(self)


def pattern(reason: Reason) -> str:
    """Return the words of a reason with ``{value}`` and ``{limit}`` where its numbers go."""
    if reason.text:
        return sanitize(reason.text, LONGEST)
    if (known := WORDS.get(reason.code)) is not None:
        return known
    name = sanitize(reason.code.replace("_", " "), 60)
    if reason.value is None:
        return name
    return f"{name} {{value}}" if reason.limit is None else f"{name} {{value}} against {{limit}}"


def in_words(reason: Reason) -> str:
    """Say a reason to people.

    >>> in_words(Reason("moved_far", 2.4))
    'moved 2.4 times as far as is free of blame'
    >>> in_words(Reason("trust", 0.1, 0.5))
    'trust 0.1 against 0.5'
    >>> in_words(Reason("rejected", text="3 of 603 values are not finite"))
    '3 of 603 values are not finite'
    """
    said = pattern(reason)
    if reason.text:
        return said
    for name, number in (("{value}", reason.value), ("{limit}", reason.limit)):
        said = said.replace(name, "?" if number is None else f"{number:.3g}")
    return said


def short(value: float) -> float | None:
    """Return a number with few digits; None of what is not finite.

    >>> short(1234567.8), short(float("nan"))
    (1234570.0, None)
    """
    return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None


def plain_reason(reason: Reason) -> Reason:
    """Return a reason that is fit to be stored: finite numbers of few digits, printable texts."""
    value, limit = (
        None if number is None else short(float(number)) for number in (reason.value, reason.limit)
    )
    return Reason(sanitize(reason.code, 60), value, limit, sanitize(reason.text, LONGEST))
