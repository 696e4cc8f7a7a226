"""NNM: every update is averaged with its nearest neighbours."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from datadefense.core.defense import BOUNDED_MEAN, Promise
from datadefense.core.preaggregator import Mixed
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.kernels.distances import squared_distances
from datadefense.preaggregators.honest_majority import HonestMajority


@dataclass(frozen=True, slots=True)
class Nnm(HonestMajority):
    r"""Replace each update by the mean of its n - f nearest ones, itself included.

    .. math:: y_i = \frac{1}{n - f} \sum_{j \in N_i} u_j

    where :math:`N_i` are the n - f clients nearest to i by Euclidean distance, i first, ties to the
    lower index. An honest row takes in attackers only where they lie among the honest; the rows of
    attackers remain, f of them. Needs n >= 2f + 1.

    Reference: Allouah et al., *Fixing by Mixing: A Recipe for Optimal Byzantine ML under
    Heterogeneity*, AISTATS 2023.

    Differs from ByzFL's in its distances, which are exact where float32 ones cancel, and in ties,
    which there depend on a partial sort.
    """

    name: ClassVar[str] = "nnm"
    keeps: ClassVar[Promise] = BOUNDED_MEAN

    def mix(self, round: Round, server: Server) -> Mixed:
        """Return the neighbours of each client."""
        clients = round.num_clients
        count = clients - self.num_malicious
        distances = squared_distances(round.updates).fill_diagonal_(-1)
        nearest = distances.sort(dim=1, stable=True).indices[:, :count]
        matrix = torch.zeros(clients, clients, dtype=torch.float64)
        matrix.scatter_(1, nearest, 1 / count)
        return Mixed(matrix, {"rows": (matrix > 0).sum(0).to(torch.float64)})
