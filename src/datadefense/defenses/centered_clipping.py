"""Centered clipping: nobody pulls the last aggregate farther than a radius."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense import Defense, Promise
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, check_int, setting
from datadefense.kernels.directions import distances_from
from datadefense.kernels.mixing import clip_factors
from datadefense.kernels.sums import add_weighted


@dataclass(frozen=True, slots=True, eq=False)
class CenteredClippingState:
    """The last aggregate, zeros at first."""

    center: Float[Tensor, " dim"]


@dataclass(frozen=True, slots=True)
class CenteredClipping(Defense[CenteredClippingState]):
    r"""Move from the last aggregate by the mean of differences that are clipped to a radius.

    .. math:: v \leftarrow v + \frac1n \sum_j (u_j - v)
              \min\Big(1, \frac{\tau}{\lVert u_j - v \rVert}\Big)

    ``iterations`` times, from the aggregate of the last round; v is the update. With
    ``radius=none`` tau is the median of the distances from v, measured anew in each iteration.
    Any number of clients; numbers of examples are ignored. Attackers who are fewer than the others
    move v by less than a median distance. The weights of clients leave out the last aggregate's.

    Reference: Karimireddy, He, Jaggi, *Learning from History for Byzantine Robust Optimization*,
    ICML 2021, equation 4. The paper's guarantee is for clients that send momentum, which is theirs
    to do.

    Differs: FLPoison and ByzFL have tau = 100 by default, which clips no update of ordinary length:
    the mean.
    """

    radius: float | None = setting(
        None, "greatest distance tau that a client pulls; none: the median distance"
    )
    iterations: int = setting(1, "how often the center is moved in a round")

    name: ClassVar[str] = "centered-clipping"
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.UNANIMOUS | Promise.TRANSLATES | Promise.BOUNDED
    )

    def __post_init__(self) -> None:
        if self.radius is not None:
            check_float("radius", self.radius, above=0)
        check_int("iterations", self.iterations, 1)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> CenteredClippingState:
        """Return the center before the first round: no update."""
        return CenteredClippingState(torch.zeros_like(params))

    def aggregate(
        self, state: CenteredClippingState, round: Round, server: Server
    ) -> Aggregate[CenteredClippingState]:
        """Move the center and apply it."""
        center, weights = state.center, torch.zeros(round.num_clients, dtype=torch.float64)
        for _ in range(self.iterations):
            distances = distances_from(round.updates, center)
            radius = float(distances.quantile(0.5)) if self.radius is None else self.radius
            scales = clip_factors(distances, radius)
            pulls = scales / round.num_clients
            left = 1 - float(pulls.sum())
            center = add_weighted(left * center, pulls, round.updates)
            weights = left * weights + pulls
        return Aggregate(
            round.global_params + center,
            CenteredClippingState(center),
            weights.clamp(min=0).to(round.updates.dtype),
            {"from_center": distances, "scale": scales},
            {"radius": radius, "of_center": float(torch.linalg.vector_norm(center.double()))},
            [
                Reason("from_center", distance, radius) if scale < 1 else None
                for distance, scale in zip(distances.tolist(), scales.tolist(), strict=True)
            ],
        )
