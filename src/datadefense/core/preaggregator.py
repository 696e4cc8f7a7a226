"""The pre-aggregator protocol: a round in, another round out, before a defense sees it."""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Generic

import torch
from jaxtyping import Float, Float64, Int
from torch import Tensor

from datadefense.core.defense import Promise
from datadefense.core.needs import Need
from datadefense.core.round import ClientId, Round, StateT
from datadefense.core.server import Server
from datadefense.kernels.mixing import mix_rows, scale_rows

Origin = Float64[Tensor, " clients"] | Float64[Tensor, "rows clients"]
"""How rows were made of clients' updates: a factor for each client, or a matrix A."""


@dataclass(frozen=True, slots=True, eq=False)
class Prepared(Generic[StateT]):
    """What leaves a pre-aggregator: the round for the next part, its next state, and why.

    Args:
        round: what the next part gets. Its rows need not be as many as the clients were.
        state: what the pre-aggregator carries to the next round.
        origin: A, if the new updates are A @ the old ones, or a factor for each client where A is
            diagonal; None where they are no such thing. With it, weights w of the new rows are
            weights A^T w of the clients.
        evidence: numbers behind it, one for each client that came in.
        report: facts about the round as plain JSON values.
    """

    round: Round
    state: StateT
    origin: Origin | None = None
    evidence: Mapping[str, Float[Tensor, " clients"]] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)

    def weights_of_clients(self, weights: Tensor | None) -> Float64[Tensor, " clients"] | None:
        """Return the weights of those that came in, from those of the rows that went out."""
        if weights is None or self.origin is None:
            return None
        rows = weights.to(torch.float64)
        return self.origin * rows if self.origin.ndim == 1 else self.origin.T @ rows

    def figures_of_clients(self, values: Tensor, before: Round) -> Tensor | None:
        """Return numbers about rows as numbers about the clients that are in them.

        Where row j is client j's (same ids), the number of its row; else the mean over the rows
        that it is in, by its share in each; None where nobody knows who is in which.
        """
        if self.round.client_ids == before.client_ids:
            return values
        if self.origin is None or self.origin.ndim == 1:
            return None
        shares = self.origin.abs().T
        total = shares.sum(1)
        sums = shares @ values.to(torch.float64)
        return torch.where(total > 0, sums / total.clamp(min=torch.finfo(total.dtype).tiny), 0.0)


class PreAggregator(ABC, Generic[StateT]):
    """One way to prepare a round for a defense: ``datadefense.create("nnm+multi-krum")``.

    A subclass is a frozen dataclass: its fields are its settings, the first line of its docstring
    is its help, and whatever it remembers is in the state. Numbers that it draws come from
    ``server.generator(self.name, round.index)``. One without memory whose rows are sums of updates
    is a `Mixer`.
    """

    __slots__ = ()
    name: ClassVar[str]
    needs: ClassVar[Need] = Need.NONE
    keeps: ClassVar[Promise] = Promise.NONE
    """Which promises of a defense still hold when this comes before it."""
    one_row_a_client: ClassVar[bool] = True
    """Whether row j that goes out is still that of client j."""

    @abstractmethod
    def init(self, server: Server, params: Float[Tensor, " dim"]) -> StateT:
        """Return the state before the first round."""

    @abstractmethod
    def prepare(self, state: StateT, round: Round, server: Server) -> Prepared[StateT]:
        """Return the round for the next part. Never raises because of what clients sent."""

    def num_rows(self, num_clients: int) -> int:
        """Return how many rows go out when ``num_clients`` come in."""
        return num_clients

    def shortage(self, num_clients: int) -> str | None:
        """Say why a round of ``num_clients`` is too small for it; None if it is not."""
        return None

    def assumed_malicious(self) -> int | None:
        """Return how many attackers it is to bear; None if it takes no number for granted."""
        return None


@dataclass(frozen=True, slots=True, eq=False)
class Mixed:
    """How a `Mixer` makes rows: A [rows, clients], or a factor for each client; and why."""

    matrix: Origin
    evidence: Mapping[str, Float[Tensor, " clients"]] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)


class Mixer(PreAggregator[None]):
    """A pre-aggregator with no memory whose rows are A @ updates: write ``mix``.

    A mixed row claims the mean of the numbers of examples of those that are in it, by their share,
    rounded and at least 1; a row that is only scaled claims what its client does.
    """

    __slots__ = ()

    @abstractmethod
    def mix(self, round: Round, server: Server) -> Mixed:
        """Return A, or a factor for each client. Must not write to ``round``."""

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> None:
        """Return the empty state."""
        return

    def prepare(self, state: None, round: Round, server: Server) -> Prepared[None]:
        """Apply ``mix``."""
        mixed = self.mix(round, server)
        matrix = mixed.matrix
        if matrix.ndim == 1:
            made = replace(round, updates=scale_rows(matrix, round.updates))
        else:
            made = replace(
                round,
                updates=mix_rows(matrix, round.updates),
                num_examples=mean_counts(matrix, round.num_examples),
                client_ids=self._ids(round, len(matrix)),
            )
        return Prepared(made, None, matrix, mixed.evidence, mixed.report)

    def _ids(self, round: Round, rows: int) -> tuple[ClientId, ...]:
        if self.one_row_a_client:
            return round.client_ids
        return tuple(f"{self.name} {row}" for row in range(rows))


def mean_counts(
    matrix: Float64[Tensor, "rows clients"], counts: Int[Tensor, " clients"]
) -> Int[Tensor, " rows"]:
    """Return the mean number of examples of those in each row, by their share; at least 1."""
    shares = matrix.abs()
    total = shares.sum(1).clamp(min=torch.finfo(shares.dtype).tiny)
    return (shares @ counts.to(shares.dtype) / total).round().clamp(min=1).to(counts.dtype)
