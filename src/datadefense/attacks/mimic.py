"""Mimic: all attackers copy one honest client, so that it counts for many."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.attacks.base import Threat
from datadefense.attacks.oracle import mean
from datadefense.attacks.untargeted import Crafted, Untargeted
from datadefense.kernels.distances import gram_matrix
from datadefense.kernels.sums import dots


@dataclass(frozen=True, slots=True)
class Mimic(Untargeted):
    r"""Untargeted: all copy the honest client that lies furthest along the greatest variance.

    .. math:: u = h_{i^*}, \quad i^* = \arg\max_i |z \cdot h_i|, \quad
        z = \arg\max_{\lVert z \rVert = 1} \sum_i (z \cdot (h_i - \mu))^2

    Nothing that is sent is dishonest in itself: robust rules that drop what is rare then drop the
    other honest clients, where data differ. z is told from the Gram matrix K of the differences
    from the mean: with its first eigenvector v and eigenvalue k, :math:`z \cdot (h_i - \mu) =
    \sqrt{k}\, v_i`.

    Reference: Karimireddy et al., *Byzantine-Robust Learning on Heterogeneous Datasets via
    Bucketing*, ICLR 2022, appendix on the mimic attack.

    Differs: the paper sums over the rounds of a warm-up and copies one client ever after; here
    other clients come in every round, so each round chooses for itself. ByzFL and FLPoison copy a
    fixed client, which may be an attacker.
    """

    name: ClassVar[str] = "mimic"
    threat: ClassVar[Threat] = Threat("what honest clients send")

    def craft(
        self, honest: Float[Tensor, "honest dim"], own: Float[Tensor, "attackers dim"]
    ) -> Crafted:
        """Return a copy of the chosen client's update."""
        heights, share = along_greatest_variance(honest)
        return honest[int(heights.abs().argmax())], {"variance_share": share}


def along_greatest_variance(
    rows: Float[Tensor, "rows dim"],
) -> tuple[Float64[Tensor, " rows"], float]:
    """Return z . h_i of each row, and which share of the variance z has; zeros if there is none."""
    middle = mean(rows)
    apart = rows - middle
    gram = gram_matrix(apart, dtype=torch.float64)
    total = float(gram.trace())
    if not 0 < total < math.inf:
        return torch.zeros(len(rows), dtype=torch.float64), 0.0
    values, vectors = torch.linalg.eigh(gram / total)
    share, first = float(values[-1]), vectors[:, -1]
    root = math.sqrt(share * total)
    return root * first + float(first @ dots(apart, middle)) / root, min(1.0, share)
