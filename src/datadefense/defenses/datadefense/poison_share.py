"""How much of the defense set is poisoned, estimated from margins, when beta is unknown."""

from dataclasses import dataclass

import torch
from jaxtyping import Bool
from torch import Tensor

from datadefense.defenses.datadefense.losses import PerExample

HIGHEST = 0.5
"""Share of the known clean examples below the threshold, up to which a threshold is tried.

Above it few clean examples are left to compare with, and the bound is mostly noise."""


@dataclass(frozen=True, slots=True)
class PoisonShare:
    """An estimate of the poisoned share of D_d, and its standard error."""

    share: float
    error: float


def estimate_poison_share(
    margins: PerExample, known_clean: Bool[Tensor, " examples"], fewest: int
) -> PoisonShare | None:
    r"""Estimate the share of poisoned examples by comparing unknown examples with clean ones.

    Unknown examples are a mixture: :math:`F_u = (1 - \pi) F_c + \pi F_p` for the distributions of
    the margin (log-odds of the label under a model that is not poisoned). For any threshold
    :math:`F_p \le 1`, so

    .. math:: \pi \ge \frac{F_u(\tau) - F_c(\tau)}{1 - F_c(\tau)}

    The estimate is the greatest of these bounds (thresholds up to the clean median), each lowered
    by its standard error so that noise does not look like poison. It is too low where the model
    finds poisoned labels as plausible as clean ones. None where fewer than ``fewest`` examples are
    known clean, or unknown.
    """
    clean, unknown = margins[known_clean], margins[~known_clean]
    if min(len(clean), len(unknown)) < fewest:
        return None
    clean, unknown = (part.to(torch.float64).sort().values for part in (clean, unknown))
    below_clean = torch.searchsorted(clean, unknown, right=True) / len(clean)
    below_unknown = torch.arange(1, len(unknown) + 1, dtype=torch.float64) / len(unknown)
    usable = below_clean <= HIGHEST
    if not bool(usable.any()):
        return PoisonShare(0.0, 0.0)
    below_clean, below_unknown = below_clean[usable], below_unknown[usable]
    bound = (below_unknown - below_clean) / (1 - below_clean)
    variance = _variance(below_unknown, len(unknown)) + _variance(below_clean, len(clean))
    error = variance.sqrt() / (1 - below_clean)
    best = int((bound - error).argmax())
    part = len(unknown) / len(margins)
    return PoisonShare(max(0.0, float(bound[best] - error[best])) * part, float(error[best]) * part)


def _variance(share: Tensor, count: int) -> Tensor:
    """Return the variance of an observed share; above 0 even where none or all were seen."""
    return (share * (1 - share) + 1 / count) / count
