"""Bucketing: average updates in small groups that nobody can foresee."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Int64
from torch import Tensor

from datadefense.core.defense import MEAN, Promise
from datadefense.core.preaggregator import Mixed, Mixer
from datadefense.core.rng import derive_seed
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.core.settings import check_int, setting


def drawn_order(round: Round, server: Server, name: str) -> Int64[Tensor, " clients"]:
    """Return a random order of the clients, in which their order of arrival has no part.

    Each client draws a number from the server's seed, the round and its id; they stand in the order
    of these numbers. Who does not know the seed cannot choose a neighbour.
    """
    drawn = [derive_seed(server.seed, "server", name, round.index, j) for j in round.client_ids]
    return torch.tensor(drawn).argsort(stable=True)


@dataclass(frozen=True, slots=True)
class Bucketing(Mixer):
    r"""Average the updates of random groups of s clients; the rule sees the groups.

    With a random permutation :math:`\pi` of the n clients, drawn anew each round:

    .. math:: y_i = \frac{1}{|B_i|} \sum_{j \in B_i} u_j, \qquad
              B_i = \{\pi(s i), \dots, \pi(\min(n, s i + s) - 1)\}, \qquad
              i = 0, \dots, \lceil n/s \rceil - 1

    Groups are less unlike each other than clients are (their variance is 1/s of it), which rules
    such as Krum need; but f attackers may be in f of the n/s groups, so the rule must bear the same
    f of fewer rows. Any number of clients: the last group may be smaller. Behind it a rule that
    bears attackers needs rows >= 2f + 1, or the pipeline falls back.

    Reference: Karimireddy et al., *Byzantine-Robust Learning on Heterogeneous Datasets via
    Bucketing*, ICLR 2022, algorithm 1.

    Differs: FLPoison shuffles the rows of a NumPy matrix with Python's ``random.shuffle``, which
    overwrites rows: some clients vanish and others count twice. ByzFL's draws from NumPy's global
    state; this draw depends on seed, round and ids alone.
    """

    bucket_size: int = setting(2, "clients s in a group")

    name: ClassVar[str] = "bucketing"
    keeps: ClassVar[Promise] = MEAN
    one_row_a_client: ClassVar[bool] = False

    def __post_init__(self) -> None:
        check_int("bucket_size", self.bucket_size, 1)

    def num_rows(self, num_clients: int) -> int:
        """Groups: n / s, rounded up."""
        return -(-num_clients // self.bucket_size)

    def mix(self, round: Round, server: Server) -> Mixed:
        """Return which clients make which group."""
        order = drawn_order(round, server, self.name)
        buckets = torch.empty_like(order)
        buckets[order] = torch.arange(len(order)) // self.bucket_size
        rows = torch.arange(self.num_rows(round.num_clients))
        inside = (buckets[None, :] == rows[:, None]).to(torch.float64)
        matrix = inside / inside.sum(1, keepdim=True)
        return Mixed(matrix, {"bucket": buckets.to(torch.float64)}, {"rows": len(rows)})
