"""The defense protocol: explicit state in, new model and next state out."""

import enum
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Generic

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.errors import InputError
from datadefense.core.needs import Need, NeedsError, wanted
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate, Round, StateT
from datadefense.core.server import Server
from datadefense.kernels.networks import median
from datadefense.kernels.sums import add_weighted


class Promise(enum.Flag):
    """What a defense claims of itself; `datadefense.testing.check_defense` holds it to that."""

    NONE = 0
    SYMMETRIC = enum.auto()
    """The order of the clients does not matter, ties aside."""
    WEIGHTED = enum.auto()
    """The new model is ``global_params + weights @ updates``, but for a correction by the server,
    of which the report says the length (``corrected``)."""
    SUMS_TO_ONE = enum.auto()
    """The weights sum to 1 (unless the report names a fallback)."""
    UNANIMOUS = enum.auto()
    """When all clients send the same small update, it is applied as it is."""
    TRANSLATES = enum.auto()
    """``global_params`` matters only as the point to which the update is added."""
    BOUNDED = enum.auto()
    """``num_malicious`` (or one) updates of any size cannot carry the result away."""
    SIGNED = enum.auto()
    """Weights may be negative: no good, but said."""


MEAN = (
    Promise.SYMMETRIC
    | Promise.WEIGHTED
    | Promise.SUMS_TO_ONE
    | Promise.UNANIMOUS
    | Promise.TRANSLATES
)
"""What a weighted mean of the updates promises."""
BOUNDED_MEAN = MEAN | Promise.BOUNDED
"""The same, where attackers' updates cannot carry the mean away."""
CLIPPED_MEAN = BOUNDED_MEAN & ~Promise.SUMS_TO_ONE
"""The same of updates that are shortened: their weights sum to less than 1."""


class TooFewClientsError(InputError):
    """A round of this size cannot be defended by this rule; raised before a run, never in one."""


class Defense(ABC, Generic[StateT]):
    """One way to turn a round into a new global model.

    A subclass is a frozen dataclass: its fields are its settings, and whatever it remembers is in
    the state that ``init`` makes and ``aggregate`` returns. Nothing is changed in place.
    """

    __slots__ = ()
    name: ClassVar[str]
    promises: ClassVar[Promise] = Promise.NONE
    revision: ClassVar[int] = 1
    """Raised when the code begins to give other models: stored runs are then run again."""
    needs: ClassVar[Need] = Need.NONE
    """What it cannot work without; said before the first round."""

    @abstractmethod
    def init(self, server: Server, params: Float[Tensor, " dim"]) -> StateT:
        """Return the state before the first round."""

    @abstractmethod
    def aggregate(self, state: StateT, round: Round, server: Server) -> Aggregate[StateT]:
        """Return the new model and the next state. Never raises because of what clients sent."""

    def sent(
        self, state: StateT, params: Float[Tensor, " dim"], server: Server, round_index: int
    ) -> Float[Tensor, " dim"]:
        """Return the model that clients are sent in a round: the global one, unless overridden.

        The round that comes back is measured against what is returned here (``global_params``).
        The same arguments must give the same bits; nothing may be changed in place.
        """
        return params

    def shortage(self, num_clients: int) -> str | None:
        """Say why a round of ``num_clients`` is too small for this rule; None if it is not."""
        return None

    def assumed_malicious(self) -> int:
        """Return how many attackers in a round the rule is to bear: ``num_malicious``, or one."""
        return int(getattr(self, "num_malicious", 1))

    def check_clients(self, num_clients: int) -> None:
        """Raise if a run with rounds of ``num_clients`` makes no sense. Call before the run."""
        if problem := self.shortage(num_clients):
            raise TooFewClientsError(problem)

    def check_needs(self, offers: Need, remedy: str | None = None) -> None:
        """Raise if the rule needs what is not offered; ``remedy`` says how to give it.

        Call before the run: with ``server.offers()``, and `Need.CLIENT_IDENTITY` where it is so.
        """
        if self.needs not in offers:
            raise NeedsError(wanted(self.name, self.needs, remedy))


@dataclass(frozen=True, slots=True, eq=False)
class Combined:
    """A rule's answer: the update to apply, and as much of the why as the rule knows.

    ``update`` may be left out where it is ``weights @ updates``.
    """

    update: Float[Tensor, " dim"] | None = None
    weights: Float[Tensor, " clients"] | None = None
    evidence: Mapping[str, Float[Tensor, " clients"]] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    reasons: Sequence[Reason | None] = ()


class Rule(Defense[None]):
    """A defense with no memory and no data: write ``combine``, the rest is here.

    In a round too small for the rule (see ``shortage``; clients may have been rejected) it falls
    back: on the median of each coordinate while honest clients can still be the majority,
    n >= 2f + 1 (f is ``num_malicious``, or one), and else on leaving the model as it is. The report
    says so.
    """

    __slots__ = ()

    @abstractmethod
    def combine(self, round: Round) -> Combined:
        """Return the update to apply to the global model. Must not write to ``round``."""

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> None:
        """Return the empty state."""
        return

    def aggregate(self, state: None, round: Round, server: Server) -> Aggregate[None]:
        """Apply ``combine``, or the fallback where the round is too small for it."""
        problem = self.shortage(round.num_clients)
        combined = (
            fall_back(round, problem, self.assumed_malicious()) if problem else self.combine(round)
        )
        if not isinstance(combined, Combined):
            raise InputError(
                f"{type(self).__name__}.combine must return a Combined, got a "
                f"{type(combined).__name__}: write Combined(update)"
            )
        if combined.update is None and combined.weights is None:
            raise InputError(f"{type(self).__name__}.combine gave neither an update nor weights")
        return applied(combined, round, None)


def applied(combined: Combined, round: Round, state: StateT) -> Aggregate[StateT]:
    """Return the model that an answer leads to, with the next state and all that was said."""
    if combined.update is not None:
        params = round.global_params + combined.update
    elif combined.weights is not None:
        params = add_weighted(round.global_params, combined.weights, round.updates)
    else:
        raise InputError("a rule gave neither an update nor weights")
    return Aggregate(
        params,
        state,
        combined.weights,
        combined.evidence,
        combined.report,
        combined.reasons,
    )


def fall_back(round: Round, problem: str, num_malicious: int) -> Combined:
    """Return what is done in a round that is too small for a rule, see `Rule`."""
    if round.num_clients >= 2 * num_malicious + 1:
        report = {"fallback": f"{problem}: took the median of each coordinate"}
        return Combined(median(round.updates), report=report)
    report = {"fallback": f"{problem}: kept the model"}
    return Combined(
        torch.zeros_like(round.global_params),
        round.updates.new_zeros(round.num_clients),
        report=report,
    )


def too_few(name: str, num_clients: int, num_malicious: int, slope: int, offset: int) -> str | None:
    """Say that ``name`` needs n >= slope f + offset, if it does not hold.

    >>> too_few("bulyan", 6, 1, 4, 3)
    'bulyan needs n >= 4f + 3, got n=6, f=1'
    """
    if num_clients >= slope * num_malicious + offset:
        return None
    factor = "f" if slope == 1 else f"{slope}f"
    return f"{name} needs n >= {factor} + {offset}, got n={num_clients}, f={num_malicious}"
