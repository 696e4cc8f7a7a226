"""Penalties: what a client's model did wrong, compared with the released model and the round.

They are the paper's three features, changed so that an attacker cannot profit from them.

- One-sided: 0 is "nothing wrong", and no behaviour lowers a penalty below 0. (In the paper a model
  with huge losses is rewarded for its huge loss on poisoned examples.)
- Relative to the model that the clients started from.
- In the learned form also relative to the round: what a quarter of the clients does is excused.
  Raising the lower quartile takes 75 % attackers, and the excuse is capped.

25 % attackers can lower the lower quartile of the distances, so distances within what was usual
before (first round: the round's median) are not penalised.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.defenses.datadefense.importance import PerClient

NAMES = ("worse_on_clean", "learned_poison", "moved_far")
"""The learned form's penalties, in the order of their columns; the default has the last one."""
FAR = 1e6
"""Penalty of a client that moved where the free distance is 0."""


@dataclass(frozen=True, slots=True)
class FreeDistance:
    """How far a client may move without a penalty.

    Args:
        of_round: multiple of the round's lower quartile.
        least: the free distance is at least this multiple of the usual distance ...
        most: ... and at most this one.
    """

    of_round: float
    least: float
    most: float


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Mean losses on D_dc and D_dp of each client and of the released model, and distances.

    ``poison`` is `without_rises` in the learned form.
    ``usual_distance`` is how far clients moved in earlier rounds; infinite in the first.
    """

    clean: PerClient
    poison: PerClient
    distance: PerClient
    released_clean: float
    released_poison: float
    usual_distance: float


def without_rises(
    losses: Float[Tensor, "clients examples"],
    released: Float[Tensor, " examples"],
    *,
    most_rise: float,
    floor: float,
) -> PerClient:
    r"""Return each client's mean loss on D_dp, where an example's loss may rise only so far.

    With b = ``most_rise`` and c = ``floor``:

    .. math::
        L_{dp}(j) = \mathrm{mean}_i
        \min\bigl(l_{ji},\ \bar l_i + b\,(\bar L_{dp} + c)\bigr)

    Otherwise a client could learn one half of the poison and hide that by making the other worse.
    """
    if not len(released):
        return torch.zeros(len(losses), dtype=torch.float64)
    most = released + most_rise * (released.mean() + floor)
    return torch.minimum(losses, most).to(torch.float64).mean(1)


def penalties(
    measured: Measured,
    *,
    floor: float,
    excuse_clean: float,
    excuse_poison: float,
    free: FreeDistance,
) -> Float64[Tensor, "clients 3"]:
    r"""Return how much each client got worse on clean examples, learned the poison, moved away.

    With :math:`q` the lower quartile of the round, and a = ``excuse_clean``, b = ``excuse_poison``:

    .. math::
        f_j = \mathrm{ReLU}\bigl[\,w_j - q(w)_{[0, a]},\quad d_j - q(d)_{[0, b]},\quad
        m_j\,\bigr]
    """
    worse, learned = worse_on_clean(measured, floor), learned_poison(measured, floor)
    return torch.stack(
        [
            worse - lower_quartile(worse).clamp(0, excuse_clean),
            learned - lower_quartile(learned).clamp(0, excuse_poison),
            moved_far(measured.distance, measured.usual_distance, free),
        ],
        dim=1,
    ).clamp(min=0)


def worse_on_clean(measured: Measured, floor: float) -> PerClient:
    r"""Return :math:`w_j = (L_{dc}(j) - \bar L_{dc}) / (\bar L_{dc} + \mathrm{floor})`."""
    return (measured.clean - measured.released_clean) / (measured.released_clean + floor)


def learned_poison(measured: Measured, floor: float) -> PerClient:
    r"""Return :math:`d_j = (\bar L_{dp} - L_{dp}(j)) / (\bar L_{dp} + \mathrm{floor})`.

    About 1: the client has learned all of the poison.
    """
    return (measured.released_poison - measured.poison) / (measured.released_poison + floor)


def moved_far(distance: PerClient, usual: float, free: FreeDistance) -> PerClient:
    r"""Return :math:`m_j = \mathrm{dist}_j / a - 1`, with a the free distance.

    .. math:: a = (k\,q(\mathrm{dist}))_{[l\,\mathrm{usual},\ h\,\mathrm{usual}]}

    with k, l and h = ``free.of_round``, ``free.least`` and ``free.most``. In the first round
    (``usual`` is infinite) :math:`a = \max(k\,q(\mathrm{dist}), \mathrm{median}(\mathrm{dist}))`.
    """
    allowed = free.of_round * float(lower_quartile(distance))
    if usual == torch.inf:
        allowed = max(allowed, float(distance.median()))
    else:
        allowed = min(max(allowed, free.least * usual), free.most * usual)
    return distance / allowed - 1 if allowed > 0 else (distance > 0) * FAR


def lower_quartile(values: PerClient) -> Tensor:
    """Return the value with a quarter of the others below it.

    >>> lower_quartile(torch.tensor([5.0, 1.0, 4.0, 2.0, 3.0]))
    tensor(2.)
    """
    return values.sort().values[(len(values) - 1) // 4]
