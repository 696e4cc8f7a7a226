"""Outcomes: what became of each client's update in a round, in one shape for all who show it."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from statistics import median
from typing import Any

from datadefense.core.gate import Rejection
from datadefense.core.reasons import REJECTED, Reason, plain_reason, short
from datadefense.core.round import Aggregate, ClientId, Round

LITTLE = 0.5
"""Share of the middle client's weight below which a rule that gives no reasons has reduced one."""


class Verdict(StrEnum):
    """What became of an update."""

    COUNTED = "counted"
    """It is in the new model with the weight that the rule gives to all alike."""
    REDUCED = "reduced"
    """It is in the new model with less than that: clipped, or trusted less."""
    EXCLUDED = "excluded"
    """It is not in the new model: its weight is 0, or the rule did not choose it."""
    VOTED = "voted"
    """The rule has no weights (the median of each coordinate, say), and it had a vote."""
    REJECTED = "rejected"
    """The gate turned it away."""


@dataclass(frozen=True, slots=True)
class ClientOutcome:
    """What became of one client's update, and why.

    Args:
        client: its id.
        verdict: in a word.
        weight: the factor of its update in the sum; None where the rule has no weights or the gate
            turned it away.
        evidence: the numbers that the rule has looked at, by name; those that are finite, with
            six digits.
        reason: why it did not count like the others; None exactly if it is counted or voted.
        num_examples: how many examples it claims to have; None where the gate turned it away.
    """

    client: ClientId
    verdict: Verdict
    weight: float | None = None
    evidence: Mapping[str, float] = field(default_factory=dict)
    reason: Reason | None = None
    num_examples: int | None = None


def outcomes_of(
    result: Aggregate[Any],
    round: Round | None,
    rejected: Sequence[Rejection],
    passed: Sequence[bool] = (),
) -> tuple[ClientOutcome, ...]:
    """Return one outcome for each update that was sent, in the order that ``passed`` tells.

    It says of each whether it was admitted; of whom it says nothing, the admitted come first.

    A client that sent twice has two, of which the gate has turned away at least one. Who is
    excluded has a reason: the rule's own or, where it gives none, the piece of evidence in which
    the client is farthest from the others, with their median as the limit.
    """
    admitted = () if round is None else _admitted(result, round)
    turned_away = [
        ClientOutcome(
            rejection.client_id, Verdict.REJECTED, reason=Reason(REJECTED, text=rejection.reason)
        )
        for rejection in rejected
    ]
    of_kind = {True: iter(admitted), False: iter(turned_away)}
    ordered = [next(of_kind[admission]) for admission in passed]
    return (*ordered, *of_kind[True], *of_kind[False])


def _admitted(result: Aggregate[Any], round: Round) -> tuple[ClientOutcome, ...]:
    clients = round.num_clients
    given = list(result.reasons) or [None] * clients
    if len(given) != clients:
        raise ValueError(f"one reason a client: clients={clients}, reasons={len(given)}")
    columns = {name: values.tolist() for name, values in result.evidence.items()}
    weights = None if result.weights is None else result.weights.tolist()
    reduced = [False] * clients if result.reasons else _down_weighted(result, round)
    counts = round.num_examples.tolist()
    outcomes: list[ClientOutcome] = []
    for row, client in enumerate(round.client_ids):
        weight = None if weights is None else weights[row]
        reason = given[row]
        if reason is None and (weight == 0 or reduced[row]):
            reason = _apparent_reason(columns, row, nobody=not any(weights or ()))
        outcomes.append(
            ClientOutcome(
                client,
                _verdict(weight, reason),
                None if weight is None or not math.isfinite(weight) else weight,
                _finite({name: values[row] for name, values in columns.items()}),
                None if reason is None else plain_reason(reason),
                counts[row],
            )
        )
    return tuple(outcomes)


def _verdict(weight: float | None, reason: Reason | None) -> Verdict:
    if weight is None:
        return Verdict.VOTED if reason is None else Verdict.EXCLUDED
    if weight == 0:
        return Verdict.EXCLUDED
    return Verdict.COUNTED if reason is None else Verdict.REDUCED


def _finite(values: Mapping[str, float]) -> dict[str, float]:
    shortened = {name: short(value) for name, value in values.items()}
    return {name: value for name, value in shortened.items() if value is not None}


def _down_weighted(result: Aggregate[Any], round: Round) -> list[bool]:
    """Say who has less than half of the middle client's weight, as it is and for its examples."""
    if result.weights is None:
        return [False] * round.num_clients
    low = [
        (values < LITTLE * values.median()).tolist()
        for values in (result.weights, result.weights / round.shares())
    ]
    return [all(both) for both in zip(*low, strict=True)]


def _apparent_reason(columns: Mapping[str, Sequence[float]], row: int, *, nobody: bool) -> Reason:
    """Return what sets a client apart, of which the rule says nothing itself."""
    if nobody:
        return Reason("model_kept")
    farthest, found = 0.0, Reason("no_weight")
    for name, values in columns.items():
        known = [value for value in values if math.isfinite(value)]
        if not math.isfinite(values[row]):
            continue
        middle = median(known)
        gap = abs(values[row] - middle)
        spread = median(abs(value - middle) for value in known)
        apart = gap / spread if spread > 0 else math.inf * gap if gap > 0 else 0.0
        if apart > farthest:
            farthest, found = apart, Reason(name, values[row], middle)
    return found
