"""Round in, Aggregate out: what a defense receives and what it returns."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import torch
from jaxtyping import Float, Int
from torch import Tensor

from datadefense.core.detector import DetectorRecord
from datadefense.core.errors import InputError
from datadefense.core.layout import Layout
from datadefense.core.reasons import Reason

ClientId = int | str
StateT = TypeVar("StateT")


@dataclass(frozen=True, slots=True, eq=False)
class Round:
    r"""What arrived in round t: a matrix with one row a client.

    Row j of ``updates`` is :math:`\phi_j^t - \bar\phi^{t-1}`, the client's model less the global
    model that was sent to it (``global_params``). `datadefense.core.gate` makes it from untrusted
    input; a round built by hand is checked for its shapes only. ``layout`` says which columns are
    which tensor of the model; the gate knows it, a round built by hand may do without.
    """

    index: int
    global_params: Float[Tensor, " dim"]
    updates: Float[Tensor, "clients dim"]
    num_examples: Int[Tensor, " clients"]
    client_ids: tuple[ClientId, ...]
    layout: Layout | None = None

    def __post_init__(self) -> None:
        if self.updates.ndim != 2 or self.global_params.ndim != 1:
            raise InputError(
                "updates must be [clients, dim] and global_params [dim], got shapes "
                f"{tuple(self.updates.shape)} and {tuple(self.global_params.shape)}"
            )
        clients, dim = self.updates.shape
        if clients < 1:
            raise InputError("a round needs clients >= 1, got 0")
        if dim != len(self.global_params):
            raise InputError(
                f"updates have dim={dim}, global_params have dim={len(self.global_params)}"
            )
        wide = (torch.float32, torch.float64)
        if self.updates.dtype not in wide or self.updates.dtype != self.global_params.dtype:
            raise InputError(
                "updates and global_params must both be float32 or both float64, got "
                f"{self.updates.dtype} and {self.global_params.dtype}"
            )
        if self.num_examples.shape != (clients,) or len(self.client_ids) != clients:
            raise InputError(
                f"one count and one id a client: clients={clients}, "
                f"num_examples has shape {tuple(self.num_examples.shape)}, "
                f"client_ids has length {len(self.client_ids)}"
            )
        if int(self.num_examples.min()) < 1:
            raise InputError(f"num_examples must be >= 1, got {int(self.num_examples.min())}")
        if self.layout is not None and self.layout.dim != dim:
            raise InputError(f"updates have dim={dim}, the layout has dim={self.layout.dim}")

    @property
    def num_clients(self) -> int:
        """Number of clients n, the rows of ``updates``."""
        return len(self.updates)

    def layers(self) -> dict[str, Float[Tensor, "clients size"]]:
        """Return the updates of each tensor of the model by its name, as views [clients, size]."""
        if self.layout is None:
            raise ValueError("this round has no layout: the gate gives one, or Round(layout=...)")
        return self.layout.split(self.updates)

    def shares(self) -> Float[Tensor, " clients"]:
        """Return each client's share of the examples, n_j / n."""
        counts = self.num_examples.to(torch.float64)
        return (counts / counts.sum()).to(self.updates.dtype)


@dataclass(frozen=True, slots=True, eq=False)
class Aggregate(Generic[StateT]):
    """What leaves a round: the new model, the defense's next state, and why.

    Args:
        params: the new global model.
        state: what the defense carries to the next round.
        weights: the factor of each client's update in the sum, >= 0; None where the rule does
            not weigh clients (the median of each coordinate, say).
        evidence: per client, the numbers behind the decision (Krum's score, an update's norm).
        report: facts about the round as plain JSON values. ``"fallback"`` is there when the rule
            could not be applied and says why and what was done instead; ``"weakened"`` when it was
            applied without what it is good for, and says what was missing.
        reasons: why a client has weight 0 or less than its share, one entry a client, None where
            there is nothing to say; empty: the core tells from the evidence. A rule without
            weights leaves out whom it gives a reason.
        detector: what the defense thinks of the server's own examples, if it has a detector.
        theta: by how much each piece of evidence lowers a weight, if the defense learns that.
    """

    params: Float[Tensor, " dim"]
    state: StateT
    weights: Float[Tensor, " clients"] | None = None
    evidence: Mapping[str, Float[Tensor, " clients"]] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    reasons: Sequence[Reason | None] = ()
    detector: DetectorRecord | None = None
    theta: Mapping[str, float] = field(default_factory=dict)
