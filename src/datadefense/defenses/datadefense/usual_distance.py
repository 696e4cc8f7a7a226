"""The usual distance: how far clients without another fault have moved in the last rounds."""

from datadefense.defenses.datadefense.importance import PerClient

MEMORY = 9
"""Rounds whose distances are remembered."""


def remembered(past: tuple[float, ...], blameless: PerClient) -> tuple[float, ...]:
    """Return the remembered distances with this round's, of those without another fault who moved.

    Whether they counted does not matter: were it so, a few clients that hardly move could make
    themselves the measure and shut the others out for good.
    """
    moved = blameless[blameless > 0]
    return (*past, float(moved.median()))[-MEMORY:] if len(moved) else past
