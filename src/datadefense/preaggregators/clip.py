"""Clip: no update is longer than a bound."""

from dataclasses import dataclass
from typing import ClassVar

import torch

from datadefense.core.defense import CLIPPED_MEAN, Promise
from datadefense.core.preaggregator import Mixed, Mixer
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, setting
from datadefense.kernels.mixing import clip_factors
from datadefense.kernels.sums import norms


@dataclass(frozen=True, slots=True)
class Clip(Mixer):
    r"""Shorten each update to a norm bound, or to the median norm of the round.

    .. math:: u_j \leftarrow u_j \min\Big(1, \frac{b}{\lVert u_j \rVert}\Big)

    With ``norm_bound=none`` b is the median of the norms; of an even number the lower of the two in
    the middle, so that less than half of the clients, however long their updates, cannot raise it
    above an honest norm. Any number of clients; one alone is never shortened to its median.

    Reference: Sun et al., *Can You Really Backdoor Federated Learning?*, 2019 (a fixed bound). To
    the median norm: Nguyen et al., *FLAME*, USENIX Security 2022.

    Differs from ``ndc``, which is ``clip+fedavg`` with a fixed bound, in that any rule may follow;
    and from ByzFL's static clipping, which writes over what it was given.
    """

    norm_bound: float | None = setting(
        None, "greatest norm b that an update keeps; none: the round's median norm"
    )

    name: ClassVar[str] = "clip"
    keeps: ClassVar[Promise] = CLIPPED_MEAN

    def __post_init__(self) -> None:
        if self.norm_bound is not None:
            check_float("norm_bound", self.norm_bound, above=0)

    def mix(self, round: Round, server: Server) -> Mixed:
        """Return the factor of each client."""
        lengths = norms(round.updates)
        bound = float(torch.median(lengths)) if self.norm_bound is None else self.norm_bound
        factors = clip_factors(lengths, bound)
        return Mixed(factors, {"norm": lengths, "scale": factors}, {"norm_bound": bound})
