"""Hold: limit the released model's probability of the sure poison, whatever clients send.

What a model *knows* of the sure poison is its mean probability of the poisoned labels. If the
weighted average knows more than the limit, the clients that know most are left out, up to a stated
share of them; if that is not enough, the step is shortened; and if that is not enough either, the
old model stays.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.defenses.datadefense.importance import PerClient

Params = Float[Tensor, " dim"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limit, and what may be done to keep it.

    Args:
        known: the most that the released model may know of the sure poison.
        most_left_out: the largest share of the clients with weight that may be left out.
        halvings: times that the step is halved before the old model stays.
    """

    known: float
    most_left_out: float
    halvings: int


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The model to release, the weights that made it, and what was done to keep the limit.

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
    limits: Limits,
    old: Held,
) -> Held:
    r"""Return a model that knows at most ``limits.known``, or the old model.

    With C the weights, n of them above 0, :math:`C^{(k)}` the same with 0 for the k clients that
    know most, and m = ``limits.most_left_out`` n rounded down: a k in 0 .. m for which
    :math:`\phi(C^{(k)})` is within the limit, found by bisection (the smallest such k if leaving
    out more clients never makes it worse); else the greatest :math:`2^{-h}` for which
    :math:`\phi(2^{-h} C^{(m)})` is. A client that is left out counts as one that sent no change.

    Args:
        average: the model that given weights make.
        knows: what a model knows of the sure poison; not a number counts as too much.
        weights: of the clients, before anybody is left out.
        known_by: what each client's own model knows.
        limits: what the released model may know, and how far to go to keep that.
        old: the model that stays if nothing else keeps the limit.
    """
    order = torch.where(weights > 0, known_by, -torch.inf).sort(descending=True, stable=True)
    most = int(limits.most_left_out * int((weights > 0).sum()))

    def without(count: int, step: float = 1.0) -> Held:
        left_out = torch.zeros_like(weights, dtype=torch.bool)
        left_out[order.indices[:count]] = True
        rest = step * weights.masked_fill(left_out, 0.0)
        params = average(rest)
        return Held(params, rest, left_out, step, knows(params))

    if not bool((weights > 0).any()):
        return old
    best = without(0)
    if best.known <= limits.known:
        return best
    best, bad = without(most) if most else best, 0
    if best.known <= limits.known:
        good = most
        while good - bad > 1:
            middle = without((bad + good) // 2)
            if middle.known <= limits.known:
                best, good = middle, (bad + good) // 2
            else:
                bad = (bad + good) // 2
        return best
    for halvings in range(1, limits.halvings + 1):
        shorter = without(most, 0.5**halvings)
        if shorter.known <= limits.known:
            return shorter
    return old
