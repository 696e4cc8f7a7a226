"""Progress of a run on Flower: how its server tells a round in a log, and how that is found there.

Both ends are here. The log is Flower's and has other lines too, of which nodes have written some.
"""

import re

from datadefense.runs.metrics import scores_in_words
from datadefense.simulation.rounds import RoundRecord

TOLD = re.compile(r"INFO *:\s+(round \d+/\d+.*)")
"""A round in a line of Flower's log: it begins so, which what a node says does not."""


def told_round(record: RoundRecord, rounds: int) -> str:
    """Return what the server logs of a round: ``round 3/10  MA 91.2 %  ASR 0.4 %  attacked``."""
    attacked = ["attacked"] if record.attackers else []
    return "  ".join([f"round {record.round}/{rounds}", *scores_in_words(record), *attacked])


def heard_round(line: str) -> str | None:
    """Return the words of `told_round` in a line of the log; None if it is about something else.

    >>> heard_round("INFO :      round 3/10  MA 91.2 %")
    'round 3/10  MA 91.2 %'
    """
    found = TOLD.fullmatch(line)
    return None if found is None else found[1]
