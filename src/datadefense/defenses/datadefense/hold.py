"""Hold: the released model knows no more of the sure poison than is allowed, whatever clients send.

The poison that a model knows is its mean probability of the sure poison's labels. If the average
of the clients knows too much, those who know most are left out, at most half of them; if that is
not enough, the step is shortened; and if that is not, the old model stays.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.defenses.datadefense.importance import PerClient

HALVINGS = 5
"""Times that a step is halved before the old model stays."""

Params = Float[Tensor, " dim"]


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The model to release, the weights that made it, and what it took.

    Args:
        left_out: clients that had a weight and lost it here.
        step: the length of the step as a share of the whole; 0: the old model stays.
        known: what the model knows of the sure poison.
    """

    params: Params
    weights: PerClient
    left_out: Bool[Tensor, " clients"]
    step: float
    known: float


def hold(
    average: Callable[[PerClient], Params],
    knows: Callable[[Params], float],
    weights: PerClient,
    known_by: PerClient,
    *,
    limit: float,
    old: Held,
) -> Held:
    r"""Return a model that knows at most ``limit``, or the old one.

    With C the weights, n of them above 0, and :math:`C^{(k)}` the same with 0 for the k clients who
    know most: a k in 0 .. n / 2 for which :math:`\phi(C^{(k)})` is within the limit, found by
    bisection (the least one if leaving out more never makes it worse); else the greatest
    :math:`2^{-h}` for which :math:`\phi(2^{-h} C^{(n / 2)})` is. Who is left out counts as one who
    sent no change.

    Args:
        average: the model that weights make.
        knows: what a model knows of the sure poison; not a number counts as too much.
        weights: of the clients, before anybody is left out.
        known_by: what each client's own model knows.
        limit: the most that the released model may know.
        old: the model that stays if nothing else will do.
    """
    order = torch.where(weights > 0, known_by, -torch.inf).sort(descending=True, stable=True)
    most = int((weights > 0).sum()) // 2

    def without(count: int, step: float = 1.0) -> Held:
        left_out = torch.zeros_like(weights, dtype=torch.bool)
        left_out[order.indices[:count]] = True
        rest = step * weights.masked_fill(left_out, 0.0)
        params = average(rest)
        return Held(params, rest, left_out, step, knows(params))

    if not bool((weights > 0).any()):
        return old
    best = without(0)
    if best.known <= limit:
        return best
    best, bad = without(most) if most else best, 0
    if best.known <= limit:
        good = most
        while good - bad > 1:
            middle = without((bad + good) // 2)
            if middle.known <= limit:
                best, good = middle, (bad + good) // 2
            else:
                bad = (bad + good) // 2
        return best
    for halvings in range(1, HALVINGS + 1):
        shorter = without(most, 0.5**halvings)
        if shorter.known <= limit:
            return shorter
    return old
