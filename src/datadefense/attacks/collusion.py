"""Collusion: what the attackers of a round can see together, and what they agree to send."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server

Params = Float[Tensor, " dim"]


class CallableRule(Protocol):
    """What a defense is to an attacker: something that can be called, with explicit state."""

    def init(self, server: Server, params: Params) -> Any:
        """Return the state before the first round."""

    def aggregate(self, state: Any, round: Round, server: Server) -> Aggregate[Any]:
        """Return the new model and the next state; the one given stays as it is."""


@dataclass(frozen=True, slots=True, eq=False)
class View:
    """Everything that could be known when all have trained and the gate has seen nothing yet.

    What the attack does not declare (`Attack.sees`) is not there: honest rows are not a number, the
    rule, its state and the server are None.

    Args:
        round: the clients that the gate will let pass, with what their training gave; of attackers
            all whose claim is good, whatever their training gave.
        attacks: which of these clients are attackers; at least one is.
        stand_ins: honest trainings on the attackers' own clean examples, as many as were wanted.
        first: the model before the first round.
        rule: the defense.
        state: what it remembers.
        server: what it may look at.
        guess: makes a server of the attackers' own data, their guess of the true one.
        own_loss: a model's mean cross-entropy on what the attackers hold, clean and poisoned.
    """

    round: Round
    attacks: Bool[Tensor, " clients"]
    stand_ins: Float[Tensor, "stand_ins dim"]
    first: Params
    rule: CallableRule | None
    state: Any
    server: Server | None
    guess: Callable[[], Server]
    own_loss: Callable[[Params], float]


@dataclass(frozen=True, slots=True, eq=False)
class Plot:
    """What the attackers send instead, in their order, and figures that say how it was chosen."""

    updates: Float[Tensor, "attackers dim"]
    facts: Mapping[str, float] = field(default_factory=dict)
