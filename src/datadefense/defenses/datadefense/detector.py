"""The poisoned data detector: gamma((x, y); psi), a score of each example of D_d (Eq. 7 and 8)."""

import math
from collections.abc import Iterator
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import one_hot

from datadefense.defenses.datadefense.losses import Labels, Logits, PerExample

FLAT = 1e-6
"""Scores whose range is below this (relative to their size, if above 1) count as all equal."""

Features = Float[Tensor, "examples width"]


@dataclass(frozen=True, slots=True, eq=False)
class Psi:
    """The detector's parameters; there are no biases."""

    W1: Float[Tensor, "hidden width"]
    W2: Float[Tensor, "classes hidden"]
    W3: Float[Tensor, "hidden twice_classes"]
    W4: Float[Tensor, "1 hidden"]

    def __iter__(self) -> Iterator[Tensor]:
        return iter((self.W1, self.W2, self.W3, self.W4))


def draw_psi(width: int, classes: int, generator: torch.Generator, hidden: int) -> Psi:
    """Draw parameters as the released code does: Xavier, normal."""
    shapes = ((hidden, width), (classes, hidden), (hidden, 2 * classes), (1, hidden))
    return Psi(
        *(torch.randn(shape, generator=generator) * math.sqrt(2 / sum(shape)) for shape in shapes)
    )


def y_hat_logits(psi: Psi, h_1: Features) -> Logits:
    r"""Logits of the simulated prediction: :math:`W_2 \mathrm{ReLU}(W_1 h_1)`."""
    return (h_1 @ psi.W1.T).relu() @ psi.W2.T


def g_2(psi: Psi, prediction: Logits, y: Labels) -> PerExample:
    r"""Scores before they are normalised (Eq. 7): :math:`W_4 \mathrm{ReLU}(W_3 [\hat y, y])`."""
    truth = one_hot(y, prediction.shape[1]).to(prediction.dtype)
    pair = torch.cat([prediction.softmax(1), truth], dim=1)
    return ((pair @ psi.W3.T).relu() @ psi.W4.T).squeeze(1)


def min_max(scores: PerExample) -> PerExample:
    r"""Norm over D_d (Eq. 8): :math:`(g - \min g) / (\max g - \min g)`.

    Where the range is flat (`FLAT`) every example scores 1/2, with no gradient, instead of 0/0.
    """
    low, high = scores.amin(), scores.amax()
    extent, size = float((high - low).detach()), float(high.detach().abs())
    if not FLAT * max(1.0, size) < extent < math.inf:
        return torch.full_like(scores, 0.5)
    return (scores - low) / (high - low)


def gamma(psi: Psi, h_1: Features, y: Labels) -> PerExample:
    """Scores in [0, 1] (Eq. 7 and 8); only their order matters for the split."""
    return min_max(g_2(psi, y_hat_logits(psi, h_1), y))


def standardise(features: Features) -> Features:
    """Return features with mean 0 and deviation 1, divided so that rows have about unit length.

    Every encoder's features then have the same scale. A constant column becomes 0, as does one
    whose deviation overflows.
    """
    deviation, mean = torch.std_mean(features, dim=0, correction=0)
    scaled = (features - mean) / (deviation + 1e-6) / math.sqrt(features.shape[1])
    return scaled.nan_to_num(0.0, 0.0, 0.0)
