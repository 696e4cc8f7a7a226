"""Shown rounds: where there are more than a page can hold, some stand for the others."""

from collections.abc import Sequence

from datadefense.simulation.rounds import RoundRecord


def shown_rounds(records: Sequence[RoundRecord], most: int) -> list[RoundRecord]:
    """Return about ``most`` rounds at most, evenly spread.

    Of so many neighbours one is taken: an attacked one if there is any, else the last. The last
    round of all is always there.
    """
    step = -(-len(records) // max(1, most))
    if step <= 1:
        return list(records)
    taken: list[RoundRecord] = []
    for start in range(0, len(records), step):
        group = records[start : start + step]
        taken.append(next((record for record in group if record.attackers), group[-1]))
    return taken if taken[-1] is records[-1] else [*taken, records[-1]]
