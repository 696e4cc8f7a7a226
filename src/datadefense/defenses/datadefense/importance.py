"""Client importance: weights from scores (Eq. 3), and the gradient of L_theta (Eq. 6) in theta."""

from typing import Literal

import torch
from jaxtyping import Float64
from torch import Tensor

from datadefense.defenses.datadefense.losses import PerExample

PerClient = Float64[Tensor, " clients"]
Theta = Float64[Tensor, " features"]
Reduction = Literal["sum", "mean"]


def relu_importance(scores: PerClient) -> PerClient:
    r"""Weights, Eq. 3: :math:`C_j = \mathrm{ReLU}(r_j) / \sum_k \mathrm{ReLU}(r_k)`.

    Where no score is above 0 all weights are 0 (not 0/0), and by Eq. 2 the model stays.
    """
    kept = scores.clamp(min=0)
    total = kept.sum()
    return kept / total if bool(total > 0) else torch.zeros_like(scores)


def linear_importance(scores: PerClient) -> PerClient:
    """Weights of the released code: no ReLU, so they may be negative or above 1."""
    total = scores.sum()
    return scores / total if bool(total != 0) else torch.zeros_like(scores)


def gradient_in_theta(
    scores: PerClient,
    weights: PerClient,
    slopes: Float64[Tensor, "clients features"],
    pulls: PerClient,
    active: Tensor,
) -> Theta:
    r"""Gradient in theta of a loss at the averaged model, without autograd through the average.

    With scores r_j, their slopes :math:`\partial r_j / \partial\theta`, and pulls
    :math:`a_j = \langle \nabla_\phi L(\bar\phi), \phi_j - \bar\phi^{t-1} \rangle`:

    .. math:: \nabla_\theta L = \sum_{j\ \mathrm{active}}
        \frac{\partial r_j}{\partial\theta} \, \frac{a_j - \sum_k C_k a_k}{\sum_k r_k^+}

    It costs one backward pass at the average and one dot product per client. Zero where no client
    is active.
    """
    total = torch.where(active, scores, 0.0).sum()
    if not bool(total != 0):
        return torch.zeros_like(slopes[0])
    change = (pulls - weights @ pulls) / total
    return torch.where(active, change, 0.0) @ slopes


def L_theta(
    clean: PerExample, poison: PerExample, marked: Tensor, reduction: Reduction = "mean"
) -> Tensor:
    r"""Loss that theta minimises, Eq. 6: l_c over D_dc plus l_p over D_dp.

    ``mean``: the mean of each part, so that the size of D_d does not matter; ``sum``: as the paper
    prints it. A part with no example counts as 0.
    """
    parts = (clean[~marked], poison[marked])
    if reduction == "sum":
        return parts[0].sum() + parts[1].sum()
    return sum((part.mean() for part in parts if len(part)), torch.zeros_like(clean[:0].sum()))
