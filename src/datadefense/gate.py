"""The gate: every update passes one admission check before any defense sees it.

A client is an attacker. What it sends is a bag of numbers that may be misshapen, not finite,
sent twice or sent by a stranger; whatever fails is turned away with a reason, and the round goes
on with the rest. Nothing is ever unpickled: the gate takes tensors and arrays only.
"""

import logging
import operator
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.params import Layout
from datadefense.round import ClientId, Round
from datadefense.settings import one_of, whole

logger = logging.getLogger(__name__)

Sends = Literal["updates", "models"]
"""What clients send: the difference from the global model, or their whole model."""


@dataclass(frozen=True, slots=True, eq=False)
class Submission:
    """What one client sent, untrusted: nothing here has been checked.

    Args:
        client_id: whom the transport says it comes from.
        content: a vector [dim], or named tensors or arrays; or the exception that the transport
            met in their place.
        num_examples: the client's claim; anything at all.
    """

    client_id: Any
    content: Any
    num_examples: Any


@dataclass(frozen=True, slots=True)
class Rejection:
    """A client that takes no part in the round, and why."""

    client_id: Any
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    """The gate's answer: the round of those admitted (None if nobody is) and the rest."""

    round: Round | None
    rejected: tuple[Rejection, ...]


@dataclass(frozen=True, slots=True)
class Gate:
    """The admission check.

    Args:
        layout: names, shapes and dtypes that an update must have.
        known_clients: ids that may take part; None admits any id.
        max_examples: greatest number of examples that a client may claim.
        sends: whether clients send updates or whole models.
    """

    layout: Layout
    known_clients: frozenset[ClientId] | None = None
    max_examples: int = 1_000_000
    sends: Sends = "updates"

    def __post_init__(self) -> None:
        whole("max_examples", self.max_examples, 1)
        one_of("sends", self.sends, get_args(Sends))

    def admit(
        self,
        index: int,
        global_params: Float[Tensor, " dim"],
        submissions: Iterable[Submission],
        expected: int | None = None,
    ) -> Admission:
        """Check the submissions one by one and stack those that pass, in the order they came.

        Each is copied once, straight into its row. ``expected`` is how many may come at the most,
        which lets the iterable be lazy: one submission is held in memory at a time.
        """
        if expected is None:
            submissions = list(submissions)
            expected = len(submissions)
        matrix = torch.empty(expected, self.layout.dim, dtype=self.layout.dtype)
        ids: list[ClientId] = []
        counts: list[int] = []
        rejected: list[Rejection] = []
        for submission in submissions:
            reason: str | None = f"round is full: expected at most {expected} updates"
            if len(ids) < expected:
                reason = self._reason(submission, ids) or self._write(
                    submission.content, global_params, matrix[len(ids)]
                )
            if reason:
                rejected.append(Rejection(submission.client_id, reason))
                logger.warning(
                    "round %d: client %.80r rejected: %s", index, submission.client_id, reason
                )
                continue
            ids.append(submission.client_id)
            counts.append(operator.index(submission.num_examples))
        if not ids:
            return Admission(None, tuple(rejected))
        admitted = Round(index, global_params, matrix[: len(ids)], torch.tensor(counts), tuple(ids))
        return Admission(admitted, tuple(rejected))

    def screen(self, round: Round) -> Admission:
        """Check a round whose matrix is already there, as a simulator's workers have written it.

        When all pass, the round is returned as it is, without a copy.
        """
        passed: list[int] = []
        ids: list[ClientId] = []
        rejected: list[Rejection] = []
        for row, (client_id, count) in enumerate(
            zip(round.client_ids, round.num_examples.tolist(), strict=True)
        ):
            submission = Submission(client_id, round.updates[row], count)
            reason = self._reason(submission, ids) or not_finite(round.updates[row])
            if reason:
                rejected.append(Rejection(client_id, reason))
                logger.warning(
                    "round %d: client %.80r rejected: %s", round.index, client_id, reason
                )
                continue
            passed.append(row)
            ids.append(client_id)
        if not rejected:
            return Admission(round, ())
        if not passed:
            return Admission(None, tuple(rejected))
        kept = torch.tensor(passed)
        admitted = Round(
            round.index,
            round.global_params,
            round.updates[kept],
            round.num_examples[kept],
            tuple(ids),
        )
        return Admission(admitted, tuple(rejected))

    def _reason(self, submission: Submission, admitted: Collection[ClientId]) -> str | None:
        """Check who sends and what it claims."""
        client_id = submission.client_id
        if isinstance(client_id, bool) or not isinstance(client_id, int | str):
            return f"client id must be an integer or text, got {type(client_id).__name__}"
        if self.known_clients is not None and client_id not in self.known_clients:
            return "unknown client"
        if client_id in admitted:
            return "second update of this client in the round"
        if isinstance(submission.content, Exception):
            return str(submission.content)
        return self._bad_count(submission.num_examples)

    def _bad_count(self, claimed: Any) -> str | None:
        if claimed is None:
            return "num_examples is missing"
        try:
            count = None if isinstance(claimed, bool) else operator.index(claimed)
        except TypeError:
            count = None
        if count is None:
            return f"num_examples must be an integer, got {claimed!r:.40}"
        if not 1 <= count <= self.max_examples:
            return f"num_examples must be in 1..{self.max_examples}, got {count}"
        return None

    def _write(
        self, content: Any, global_params: Float[Tensor, " dim"], row: Float[Tensor, " dim"]
    ) -> str | None:
        """Write the content into its row, or say why it cannot be."""
        if isinstance(content, Mapping):
            tensors: dict[str, Tensor] = {}
            for name, value in content.items():
                tensor = as_tensor(value)
                if not isinstance(name, str) or tensor is None:
                    return f"{name!r:.60} is not a named numeric array"
                tensors[name] = tensor
            if problem := self.layout.mismatch(tensors):
                return problem
            self.layout.flatten(tensors, out=row)
        else:
            vector = as_tensor(content)
            if vector is None:
                return f"expected a numeric array or named arrays, got {type(content).__name__}"
            if vector.shape != row.shape:
                return f"update has shape {tuple(vector.shape)}, expected {tuple(row.shape)}"
            if vector.dtype != row.dtype:
                return f"update has dtype {vector.dtype}, expected {row.dtype}"
            row.copy_(vector)
        if self.sends == "models":
            row.sub_(global_params)
        return not_finite(row)


def as_tensor(value: Any) -> Tensor | None:
    """Return a dense tensor over the value's memory, or None if it is not a numeric array."""
    if isinstance(value, Tensor):
        return value.detach() if value.layout == torch.strided else None
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf":
        try:
            return torch.from_numpy(np.ascontiguousarray(value).reshape(value.shape))
        except (TypeError, ValueError):
            return None
    return None


def not_finite(row: Float[Tensor, " dim"]) -> str | None:
    """Say how many values are NaN or infinite; None if all are finite.

    A finite sum proves that all terms are; only a row whose sum is not is looked at closely.
    """
    if bool(row.sum().isfinite()):
        return None
    bad = int((~row.isfinite()).sum())
    return f"{bad} of {len(row)} values are not finite" if bad else None
