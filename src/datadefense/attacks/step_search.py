"""Step search: the largest step that survives, and the best one, in few tries."""

import math
from collections.abc import Callable

FACTOR, POINTS = 4.0, 7
"""Steps of the grid: so many, each a quarter of the one before."""
BISECTIONS, REFINEMENTS = 5, 3
"""Times that the gap between two steps is halved, in the logarithm: of the largest, of the best."""
PATIENCE = 2
"""Steps of the grid in a row that are no better before the rest is given up."""


def grid(longest: float) -> list[float]:
    """Return the steps that are tried first, the longest first.

    >>> grid(16.0)[:4], len(grid(16.0))
    ([16.0, 4.0, 1.0, 0.25], 7)
    """
    return [longest / FACTOR**place for place in range(POINTS)]


def largest_step(survives: Callable[[float], bool], longest: float) -> float:
    r"""Return the largest step found that survives; 0 if none does.

    From the top of the grid down to the first that survives, s; then bisection between s and 4s in
    the logarithm. If every step up to some :math:`s^*` survives and none beyond it, then
    :math:`s \le s^* < 4^{1/32} s`, which is 1.05 s, unless :math:`s^*` is ``longest`` or more, or
    below the grid, where s is 0. At most 12 tries.
    """
    good = next((step for step in grid(longest) if survives(step)), 0.0)
    if good in (0.0, longest):
        return good
    ratio = FACTOR
    for _ in range(BISECTIONS):
        ratio = math.sqrt(ratio)
        if survives(good * ratio):
            good *= ratio
    return good


def best_step(loss: Callable[[float], float], longest: float) -> float:
    """Return the step with the least loss found; of equal ones the shortest; 0 if none is better.

    Down the grid until two in a row are worse than the best so far; then ever nearer neighbours of
    the best, at last within a factor of 1.2. What is not a number is no loss that anybody wants. If
    the loss has one valley, the least is within that factor. At most 14 tries.
    """

    def known(step: float) -> float:
        value = loss(step)
        return math.inf if math.isnan(value) else value

    nothing = known(0.0)
    best, least, worse = 0.0, math.inf, 0
    for step in grid(longest):
        if (value := known(step)) <= least:
            best, least, worse = step, value, 0
        else:
            worse += 1
        if worse == PATIENCE:
            break
    ratio = FACTOR
    for _ in range(REFINEMENTS):
        ratio = math.sqrt(ratio)
        if (value := known(best / ratio)) <= least:
            best, least = best / ratio, value
        elif best * ratio <= longest and (value := known(best * ratio)) < least:
            best, least = best * ratio, value
    return best if least < nothing else 0.0
