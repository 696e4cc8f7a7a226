"""Each client's worst fault as the reason why it has less than an equal share, or nothing."""

from collections.abc import Sequence

from jaxtyping import Float64
from torch import Tensor

from datadefense.core.reasons import Reason
from datadefense.defenses.datadefense.importance import PerClient

PERCENT = (100.0, 0.0)
SCALES = {
    "known_poison": PERCENT,
    "learned_poison": PERCENT,
    "moved_far": (1.0, 1.0),
    "worse_on_clean": PERCENT,
}
"""Factor and offset that make of a fault what people are told: percent, or a multiple."""

ROUNDING = 1e-9
"""Share below an equal one that is nothing but rounding."""


def worst_faults(
    names: Sequence[str],
    f: Float64[Tensor, "clients faults"],
    theta: Float64[Tensor, " faults"],
    weights: PerClient,
) -> list[Reason | None]:
    """Return the fault that costs most, of each client with less than an equal share.

    An equal share is the mean weight. Who has as much or more has no reason, though it may have
    small faults: they are in the evidence. Neither has one without any fault.

    Args:
        names: of the faults, in the order of the columns.
        f: how large each fault of each client is, >= 0.
        theta: what a fault costs.
        weights: what the clients have in the end.
    """
    costs = f * theta
    low = ((weights < (1 - ROUNDING) * weights.mean()) | (weights == 0)).tolist()
    reasons: list[Reason | None] = []
    for row, place in enumerate(costs.argmax(1).tolist()):
        if low[row] and float(costs[row, place]) > 0:
            factor, more = SCALES[names[place]]
            value = factor * float(f[row, place]) + more
            reasons.append(Reason(names[place], value))
        else:
            reasons.append(None)
    return reasons
