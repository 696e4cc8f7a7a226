"""Progress of a run on Flower: the line that its server logs for a round, and how it is read back.

The log is Flower's and has other lines too, of which nodes have written some.
"""

import re

from datadefense.runs.metrics import scores_in_words
from datadefense.simulation.rounds import RoundRecord

ROUND_LINE = re.compile(r"INFO *:\s+(round \d+/\d+.*)")
"""A round in a line of Flower's log: it begins so, which what a node says does not."""


def round_log_line(record: RoundRecord, rounds: int) -> str:
    """Return what the server logs of a round: ``round 3/10  MA 91.2 %  ASR 0.4 %  attacked``."""
    attacked = ["attacked"] if record.attackers else []
    return "  ".join([f"round {record.round}/{rounds}", *scores_in_words(record), *attacked])


def round_in_log_line(line: str) -> str | None:
    """Return what `round_log_line` wrote, from a line of the log; None if it wrote none of it.

    >>> round_in_log_line("INFO :      round 3/10  MA 91.2 %")
    'round 3/10  MA 91.2 %'
    """
    found = ROUND_LINE.fullmatch(line)
    return None if found is None else found[1]
