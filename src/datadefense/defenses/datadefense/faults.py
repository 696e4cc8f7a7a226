"""Faults: what speaks against a client's model, measured against the released one and the round.

The paper's three features in a form that an attacker cannot turn round. Each is one-sided: 0 is "no
fault", and nothing that a model does earns it a bonus (a blown-up model has a huge loss on poisoned
points too). Each is relative: to the model that the clients started from and, in the learned form,
where the whole round goes one way, to the round's lower quartile. Attackers can raise it only if
they are three in four, and even then no more than a stated excuse is granted; one in four can lower
it, by hardly moving, which is why distances are free up to what was usual before or, while nothing
is, up to the round's median.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.defenses.datadefense.importance import PerClient

NAMES = ("worse_on_clean", "learned_poison", "moved_far")
"""The learned form's faults, in the order of their columns; the default has the last two."""
FLOOR = 0.1
"""Nats added to a loss before something is divided by it."""
EXCUSES = (2.0, 0.25)
"""Most of the first and of the second fault that is excused because the round shares it."""
MOST_RISE = 0.5
"""Rise of one poisoned example's loss that counts, as a share of their mean loss."""
OF_THE_ROUND = 2.0
"""Multiple of the round's lower quartile up to which a distance is free."""
LEAST_OF_THE_PAST, MOST_OF_THE_PAST = 1.5, 3.0
"""Multiples of what was usual so far between which the free distance stays."""


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """Mean losses on D_dc and D_dp of each client and of the released model, and distances.

    ``poison`` is `without_rises` in the learned form.
    ``usual_distance`` is what clients have moved in rounds before; infinite in the first.
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
    most_rise: float = MOST_RISE,
) -> PerClient:
    r"""Return each client's mean loss on D_dp, where a rise beyond a half of the mean is cut off.

    .. math::
        L_{dp}(j) = \mathrm{mean}_i
        \min\bigl(l_{ji},\ \bar l_i + (\bar L_{dp} + 0.1) / 2\bigr)

    Otherwise a client could learn one half of the poison and hide that by making the other worse.
    """
    if not len(released):
        return torch.zeros(len(losses), dtype=torch.float64)
    most = released + most_rise * (released.mean() + FLOOR)
    return torch.minimum(losses, most).to(torch.float64).mean(1)


def faults(
    measured: Measured, excuses: tuple[float, float] = EXCUSES
) -> Float64[Tensor, "clients 3"]:
    r"""Return how far each client got worse on clean points, learned poisoned labels, moved away.

    With :math:`q` the lower quartile of the round:

    .. math::
        f_j = \mathrm{ReLU}\bigl[\,w_j - q(w)_{[0, 2]},\quad d_j - q(d)_{[0, 1/4]},\quad
        m_j\,\bigr]
    """
    worse, learned = worse_on_clean(measured), learned_poison(measured)
    return torch.stack(
        [
            worse - lower_quartile(worse).clamp(0, excuses[0]),
            learned - lower_quartile(learned).clamp(0, excuses[1]),
            moved_far(measured),
        ],
        dim=1,
    ).clamp(min=0)


def worse_on_clean(measured: Measured) -> PerClient:
    r"""Return :math:`w_j = (L_{dc}(j) - \bar L_{dc}) / (\bar L_{dc} + 0.1)`."""
    return (measured.clean - measured.released_clean) / (measured.released_clean + FLOOR)


def learned_poison(measured: Measured) -> PerClient:
    r"""Return :math:`d_j = (\bar L_{dp} - L_{dp}(j)) / (\bar L_{dp} + 0.1)`: 1 is all of it."""
    return (measured.released_poison - measured.poison) / (measured.released_poison + FLOOR)


def moved_far(measured: Measured) -> PerClient:
    r"""Return :math:`m_j = \mathrm{dist}_j / a - 1`, with a the distance that is free.

    .. math:: a = 2\,q(\mathrm{dist})_{[1.5\,\mathrm{usual},\ 3\,\mathrm{usual}]}

    In the first round :math:`a = \max(2\,q(\mathrm{dist}), \mathrm{median}(\mathrm{dist}))`.
    """
    allowed = _free_distance(measured)
    return measured.distance / allowed - 1 if allowed > 0 else (measured.distance > 0) * 1e6


def _free_distance(measured: Measured) -> float:
    """Return how far a client may move without a fault."""
    allowed = OF_THE_ROUND * float(lower_quartile(measured.distance))
    usual = measured.usual_distance
    if usual == torch.inf:
        return max(allowed, float(measured.distance.median()))
    return min(max(allowed, LEAST_OF_THE_PAST * usual), MOST_OF_THE_PAST * usual)


def lower_quartile(values: PerClient) -> Tensor:
    """Return the value with a quarter of the others below it.

    >>> lower_quartile(torch.tensor([5.0, 1.0, 4.0, 2.0, 3.0]))
    tensor(2.)
    """
    return values.sort().values[(len(values) - 1) // 4]
