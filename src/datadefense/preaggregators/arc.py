"""ARC: shorten the longest updates, as many as the assumed attackers call for."""

from dataclasses import dataclass
from typing import ClassVar

from datadefense.core.defense import CLIPPED_MEAN, Promise
from datadefense.core.preaggregator import Mixed
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.kernels.mixing import clip_factors
from datadefense.kernels.sums import norms
from datadefense.preaggregators.honest_majority import HonestMajority


@dataclass(frozen=True, slots=True)
class Arc(HonestMajority):
    r"""Shorten the k longest updates to the norm of the next one (adaptive robust clipping).

    .. math:: u_j \leftarrow u_j \min\Big(1, \frac{b}{\lVert u_j \rVert}\Big), \qquad
              k = \Big\lfloor \frac{2 f (n - f)}{n} \Big\rfloor

    where b is the (k+1)-th largest norm. As k >= f for n >= 2f, b is at most the longest honest
    norm. Needs n >= 2f + 1.

    Reference: Allouah et al., *Adaptive Gradient Clipping for Robust Federated Learning*, ICLR
    2025, arXiv:2405.14432.

    Differs from ByzFL's, which counts k in floating point and writes over what it was given.
    """

    name: ClassVar[str] = "arc"
    keeps: ClassVar[Promise] = CLIPPED_MEAN

    def mix(self, round: Round, server: Server) -> Mixed:
        """Return the factor of each client."""
        lengths = norms(round.updates)
        clients, malicious = round.num_clients, self.num_malicious
        count = 2 * malicious * (clients - malicious) // clients
        bound = float(lengths.sort(descending=True).values[count])
        factors = clip_factors(lengths, bound)
        return Mixed(factors, {"norm": lengths, "scale": factors}, {"norm_bound": bound})
