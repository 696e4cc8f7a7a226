"""The usual distance: how far clients without another penalty have moved in the last rounds."""

from datadefense.defenses.datadefense.importance import PerClient


def remembered(past: tuple[float, ...], blameless: PerClient, rounds: int) -> tuple[float, ...]:
    """Return the median distances of the last ``rounds`` rounds, this round included.

    Args:
        past: the medians of earlier rounds.
        blameless: distances of this round's clients without another penalty. Those who did not
            move are left out. Their weights do not matter: otherwise a few clients that hardly
            move could make their own distance the usual one and exclude the others for good.
        rounds: how many rounds are remembered.
    """
    moved = blameless[blameless > 0]
    return (*past, float(moved.median()))[-rounds:] if len(moved) else past
