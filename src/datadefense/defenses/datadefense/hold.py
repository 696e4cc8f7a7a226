"""Hold: limit the released model's probability of the sure poison, whatever clients send.

What a model *knows* of the sure poison is its mean probability of the poisoned labels. If the
weighted average of the clients knows more than the limit, the server corrects it: it moves the
average the shortest way to where it knows less. A correction may be no longer than the step that
it corrects. If that is not enough, the clients' step is shortened, and if that is not enough
either, the old model stays.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.defenses.datadefense.importance import PerClient

Params = Float[Tensor, " dim"]


@dataclass(frozen=True, slots=True)
class Limits:
    """The limit, and what may be done to keep it.

    Args:
        known: the most that the released model may know of the sure poison.
        aim: what a correction aims at, as a share of ``known``.
        corrections: times that a model is corrected before the step is shortened.
        halvings: times that the step is halved before the old model stays.
    """

    known: float
    aim: float
    corrections: int
    halvings: int


@dataclass(frozen=True, slots=True, eq=False)
class Held:
    """The model to release, the weights that made it, and what was done to keep the limit.

    Args:
        step: the length of the clients' step as a share of the whole; 0: the old model stays.
        corrected: how far the server moved their average.
        known: what the model knows of the sure poison.
    """

    params: Params
    weights: PerClient
    step: float
    corrected: float
    known: float


def hold(
    average: Callable[[PerClient], Params],
    knows: Callable[[Params], float],
    slope: Callable[[Params], Params],
    weights: PerClient,
    *,
    limits: Limits,
    old: Held,
) -> Held:
    r"""Return a model that knows at most ``limits.known``, or the old model.

    With C the weights and :math:`\phi(C)` the average, the greatest :math:`2^{-h}` for which
    :math:`\phi(2^{-h} C)`, corrected if need be (`corrected`), is within the limit.

    Args:
        average: the model that given weights make.
        knows: what a model knows of the sure poison; not a number counts as too much.
        slope: the gradient of ``knows``.
        weights: of the clients.
        limits: what the released model may know, and how far to go to keep that.
        old: the model that stays if nothing else keeps the limit.
    """
    if not bool((weights > 0).any()):
        return old
    for halvings in range(limits.halvings + 1):
        step = 0.5**halvings
        params = average(step * weights)
        reach = float(torch.linalg.vector_norm(params - old.params))
        found = corrected(params, knows, slope, limits, reach)
        if found is not None:
            moved = float(torch.linalg.vector_norm(found[0] - params))
            return Held(found[0], step * weights, step, moved, found[1])
    return old


def corrected(
    params: Params,
    knows: Callable[[Params], float],
    slope: Callable[[Params], Params],
    limits: Limits,
    reach: float,
) -> tuple[Params, float] | None:
    r"""Return a model near ``params`` that is within the limit, and what it knows; None: not found.

    Newton's steps along the gradient, each the shortest way to where a straight line would have
    S at ``aim`` times the limit L:

    .. math:: \phi \leftarrow \phi - \frac{S(\phi) - \mathrm{aim}\,L}{\lVert \nabla S \rVert^2}
        \nabla S(\phi)

    given up after ``limits.corrections`` of them, or further than ``reach`` from where they began.
    """
    now, known = params, knows(params)
    for _ in range(limits.corrections):
        if known <= limits.known:
            break
        g = slope(now)
        steep = float((g * g).sum())
        if not steep > 0:
            return None
        now = now - (known - limits.aim * limits.known) / steep * g
        if not float(torch.linalg.vector_norm(now - params)) <= reach:
            return None
        known = knows(now)
    return (now, known) if known <= limits.known else None
