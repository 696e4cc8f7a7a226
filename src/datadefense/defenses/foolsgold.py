"""FoolsGold: who has moved like somebody else all along counts less."""

from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.core.defense import MEAN, Defense, Promise
from datadefense.core.needs import Need
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate, ClientId, Round
from datadefense.core.server import Server
from datadefense.core.settings import check_int, setting
from datadefense.kernels.directions import cosine_distances, exact_gram
from datadefense.kernels.passes import whole_rows
from datadefense.kernels.sums import add_weighted

SMALL = 1e-5
"""What the authors add to a similarity and to odds, against a division by 0."""
ALIKE = 1e-9
"""If nobody is less similar than 1 by more than this, all are alike and nobody is set apart."""
NEARLY_ONE = 0.99
"""What a learning rate of 1 becomes before its odds are taken."""
FULL = 1 / (1 + 2.718281828459045**-0.5)
"""The rate, relative to the greatest, from which on a client counts fully: logit + 1/2 = 1."""


class Rates(NamedTuple):
    """How much each client counts, in [0, 1]; its similarity; and up to which that is no blame."""

    rates: Float64[Tensor, " clients"]
    similarity: Float64[Tensor, " clients"]
    limit: float


def foolsgold_rates(cosines: Float64[Tensor, "clients clients"]) -> Rates:
    r"""Return the rates :math:`\alpha_i` of clients from the cosines of their histories.

    .. math::
        v_i &= \max_j c_{ij} + 10^{-5}, \qquad c_{ii} = 0 \\
        c_{ij} &\leftarrow c_{ij} v_i / v_j \quad \text{where } v_i < v_j \\
        a_i &= \mathrm{clip}(1 - \max_j c_{ij}, 0, 1), \qquad
        a_i \leftarrow \min(a_i / \max_k a_k, 0.99) \\
        \alpha_i &= \mathrm{clip}\Big(\ln\Big(\frac{a_i}{1 - a_i} + 10^{-5}\Big) + \tfrac12,
                                      0, 1\Big)

    The second line is the paper's pardoning. Where all are alike (max a = 0) nobody is set apart
    and all rates are 1.
    """
    cosines = cosines.clone().fill_diagonal_(0)
    most = cosines.amax(1) + SMALL
    pardoned = cosines * torch.where(most[:, None] < most[None, :], most[:, None] / most, 1.0)
    similarity = pardoned.amax(1).clamp(0, 1)
    rates = 1 - similarity
    greatest = float(rates.max())
    if greatest <= ALIKE:
        return Rates(torch.ones_like(rates), similarity, 1.0)
    share = (rates / greatest).clamp(max=NEARLY_ONE)
    odds = (share / (1 - share) + SMALL).log() + 0.5
    return Rates(odds.clamp(0, 1), similarity, 1 - FULL * greatest)


@dataclass(frozen=True, slots=True, eq=False)
class FoolsGoldState:
    """The sum of each client's updates, by id; who was absent longest comes first."""

    history: dict[ClientId, Tensor] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class FoolsGold(Defense[FoolsGoldState]):
    r"""Weigh clients by how unlike each other the sums of all their updates are.

    .. math:: h_j \leftarrow h_j + u_j, \qquad u = \sum_j \frac{\alpha_j}{\sum_k \alpha_k} u_j

    with the rates of `foolsgold_rates` of :math:`c_{ij} = \cos(h_i, h_j)`. Made against many sybils
    that push one way: with few or IID clients it blames honest ones for being alike, and it cannot
    see an attacker who is alone. Any number of clients; a single one counts fully. Numbers of
    examples are ignored, and updates are not clipped.

    The history is by client id: needs clients that keep theirs. An id can be changed where nodes
    are not authenticated, and a sybil with a new id in each round has no history. Memory is one
    update a client; who was absent longest is forgotten beyond ``remember`` clients.

    Reference: Fung, Yoon, Beschastnikh, *The Limitations of Federated Learning in Sybil Settings*,
    RAID 2020, algorithm 1.

    Differs: the authors' code sums a_j u_j, a gradient, where this divides by sum a (as BackFed).
    AlignIns's copy keeps a history and then compares this round's updates. FLPoison masks all but
    the largest signed values, and brings updates to norm 1; BackFed those of the history. The
    authors' weighting of features by the output layer is left out. All alike is 0/0 there.
    """

    remember: int = setting(
        1000, "most clients whose history is kept, by ids that a client may be able to change"
    )

    name: ClassVar[str] = "foolsgold"
    needs: ClassVar[Need] = Need.CLIENT_IDENTITY
    promises: ClassVar[Promise] = MEAN

    def __post_init__(self) -> None:
        check_int("remember", self.remember, 1)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> FoolsGoldState:
        """Return an empty history."""
        return FoolsGoldState()

    def aggregate(
        self, state: FoolsGoldState, round: Round, server: Server
    ) -> Aggregate[FoolsGoldState]:
        """Add to the histories, and weigh by how unlike they are."""
        sums = _with_history(round, state.history)
        found = foolsgold_rates(1 - cosine_distances(exact_gram(sums)))
        weights = (found.rates / found.rates.sum()).to(round.updates.dtype)
        present = {client: sums[row].clone() for row, client in enumerate(round.client_ids)}
        absent = {client: kept for client, kept in state.history.items() if client not in present}
        kept = list({**absent, **present}.items())[-self.remember :]
        return Aggregate(
            add_weighted(round.global_params, weights, round.updates),
            FoolsGoldState(dict(kept)),
            weights,
            {"similarity": found.similarity, "rate": found.rates},
            {"remembered": len(kept)},
            [
                Reason("similarity", similarity, found.limit) if rate < 1 else None
                for similarity, rate in zip(
                    found.similarity.tolist(), found.rates.tolist(), strict=True
                )
            ],
        )


def _with_history(round: Round, history: dict[ClientId, Tensor]) -> Float[Tensor, "clients dim"]:
    """Return the sum of all updates of each client of the round, finite."""
    sums = torch.empty_like(round.updates)
    for rows in whole_rows(round.updates):
        sums[rows] = round.updates[rows]
    for row, client in enumerate(round.client_ids):
        if (before := history.get(client)) is not None:
            sums[row] += before
    largest = torch.finfo(sums.dtype).max
    return sums.clamp_(-largest, largest)
