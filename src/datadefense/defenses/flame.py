"""FLAME: the majority that is connected by the smallest angles, clipped, with noise."""

from dataclasses import dataclass
from typing import ClassVar, Literal, NamedTuple

import torch
from jaxtyping import Bool, Float, Float64
from torch import Tensor

from datadefense.core.defense import Defense, Promise
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import check_choice, check_float, setting
from datadefense.kernels.directions import SAME_DIRECTION, cosine_distances, exact_gram
from datadefense.kernels.mixing import clip_factors
from datadefense.kernels.sums import add_weighted, norms


class Majority(NamedTuple):
    """The clients of the majority, and the distance up to which pairs had to be connected."""

    members: Bool[Tensor, " clients"]
    reach: float


def spanning_tree(distances: Float64[Tensor, "clients clients"]) -> list[tuple[float, int, int]]:
    """Return the edges of a minimum spanning tree by growing length (Prim), as (length, i, j)."""
    clients = len(distances)
    best = distances[0].clone()
    parent = torch.zeros(clients, dtype=torch.int64)
    outside = torch.ones(clients, dtype=torch.bool)
    outside[0] = False
    edges: list[tuple[float, int, int]] = []
    for _ in range(clients - 1):
        nearest = int(best.masked_fill(~outside, torch.inf).argmin())
        edges.append((float(best[nearest]), int(parent[nearest]), nearest))
        outside[nearest] = False
        closer = distances[nearest] < best
        best = torch.where(closer, distances[nearest], best)
        parent[closer] = nearest
    return sorted(edges)


def connected_majority(distances: Float64[Tensor, "clients clients"]) -> Majority:
    r"""Return the first component with more than half of the clients.

    Pairs are connected by growing distance, equal distances at once, until a component has
    :math:`\lfloor n/2 \rfloor + 1` members. That is the one cluster that HDBSCAN finds with this
    least cluster size, one neighbour and ``allow_single_cluster``: no split has two sides that
    large, so the root is the only cluster, and its members are those of the last component that
    is large enough.
    """
    clients = len(distances)
    names = list(range(clients))
    reach = torch.inf if clients > 1 else 0.0
    for length, one, two in spanning_tree(distances):
        if length > reach + SAME_DIRECTION:
            break
        joined, other = names[one], names[two]
        names = [joined if name == other else name for name in names]
        if names.count(joined) > clients // 2:
            reach = length
    largest = max(sorted(set(names)), key=names.count)
    return Majority(torch.tensor([name == largest for name in names]), reach)


@dataclass(frozen=True, slots=True)
class Flame(Defense[None]):
    r"""Average the clipped updates of a majority that points the same way, and add noise.

    .. math::
        d_{ij} &= 1 - \cos(w_i, w_j), \qquad w_j = g + u_j \\
        S &= \mathrm{median}_j \lVert u_j \rVert \\
        u &= \frac{1}{|A|} \sum_{j \in A} u_j \min\Big(1, \frac{S}{\lVert u_j \rVert}\Big) +
             \mathcal N(0, (\lambda S)^2 I)

    A is the majority connected by the smallest distances (`connected_majority`), at least
    floor(n/2) + 1 clients; S is of all clients, also those left out. ``space="updates"`` compares
    updates instead of models. The noise is for parameters, not for BatchNorm's statistics, and
    depends on the server's seed and the round's index alone. Its length is lambda S sqrt(dim):
    three times S for 9 million parameters. Any number of clients; one or two are all accepted. The
    result is bounded while honest clients are the majority: nobody counts with more than S.

    Reference: Nguyen et al., *FLAME: Taming Backdoors in Federated Learning*, USENIX Security 2022,
    algorithm 1. The paper derives lambda from a privacy budget; 0.001 is what public copies take.

    Differs: zhmzm/FLAME and SoDa run HDBSCAN with the Euclidean metric on the rows of the cosine
    matrix; BackFed compares the last two arrays only. zhmzm/FLAME clips by the norm of another
    client once somebody is left out; in SoDa clipping has no effect, and its median is of the
    accepted. BackFed and FLPoison multiply the noise by each layer's standard deviation.
    """

    noise_multiplier: float = setting(0.001, "noise in a coordinate lambda, in median norms")
    space: Literal["models", "updates"] = setting(
        "models", "what angles are between: models or updates"
    )
    weighting: Literal["uniform", "examples"] = setting(
        "uniform", "how the accepted are averaged: uniform or examples"
    )

    name: ClassVar[str] = "flame"
    promises: ClassVar[Promise] = Promise.SYMMETRIC | Promise.BOUNDED

    def __post_init__(self) -> None:
        check_float("noise_multiplier", self.noise_multiplier, minimum=0)
        check_choice("space", self.space, ("models", "updates"))
        check_choice("weighting", self.weighting, ("uniform", "examples"))

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> None:
        """Return the empty state."""
        return

    def aggregate(self, state: None, round: Round, server: Server) -> Aggregate[None]:
        """Find the majority, clip, average, add noise."""
        origin = round.global_params if self.space == "models" else None
        distances = cosine_distances(exact_gram(round.updates, origin))
        majority = connected_majority(distances)
        lengths = norms(round.updates)
        bound = float(lengths.quantile(0.5))
        scales = clip_factors(lengths, bound)
        shares = round.shares() if self.weighting == "examples" else torch.ones_like(round.shares())
        shares = shares.double() * majority.members
        weights = (scales * shares / shares.sum()).to(round.updates.dtype)
        std = self.noise_multiplier * bound
        base = round.global_params + self._noise(round, server, std)
        nearest = _nearest_member(distances, majority.members)
        return Aggregate(
            add_weighted(base, weights, round.updates),
            None,
            weights,
            {"angle": nearest, "norm": lengths, "scale": scales},
            {
                "accepted": int(majority.members.sum()),
                "reach": majority.reach,
                "norm_bound": bound,
                "noise_std": std,
            },
            _reasons(majority, nearest.tolist(), lengths.tolist(), bound),
        )

    def _noise(self, round: Round, server: Server, std: float) -> Float[Tensor, " dim"]:
        """Return the noise of the round; none for tensors that no gradient moves."""
        if std == 0:
            return torch.zeros_like(round.global_params)
        draw = server.generator(self.name, round.index)
        noise = torch.randn(len(round.global_params), generator=draw, dtype=round.updates.dtype)
        for slot in () if round.layout is None else round.layout.slots:
            if slot.carried:
                noise[slot.start : slot.stop] = 0
        return noise.mul_(std).to(round.updates.device)


def _nearest_member(
    distances: Float64[Tensor, "clients clients"], members: Bool[Tensor, " clients"]
) -> Float64[Tensor, " clients"]:
    """Return each client's distance from the nearest other client of the majority; alone, 0."""
    others = distances.clone().fill_diagonal_(torch.inf)
    nearest = others.masked_fill(~members[None, :], torch.inf).amin(1)
    return nearest.masked_fill(nearest.isinf(), 0.0)


def _reasons(
    majority: Majority, nearest: list[float], lengths: list[float], bound: float
) -> list[Reason | None]:
    """Return who is not in the majority, and who was clipped."""
    return [
        Reason("angle", apart, majority.reach)
        if not member
        else Reason("norm", length, bound)
        if length > bound
        else None
        for member, apart, length in zip(majority.members.tolist(), nearest, lengths, strict=True)
    ]
