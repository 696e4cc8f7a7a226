"""The gate: every update passes one admission check before any defense sees it.

A client is an attacker. What it sends is a bag of numbers that may be misshapen, not finite,
sent twice or sent by a stranger; whatever fails is turned away with a reason, and the round goes
on with the rest. Nothing is ever unpickled: the gate takes tensors and arrays only.
"""

import logging
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.memory import empty_matrix
from datadefense.params import Layout
from datadefense.round import ClientId, Round
from datadefense.settings import one_of, whole
from datadefense.spill import Spill, release

logger = logging.getLogger(__name__)

LARGEST = 1e100
"""Greatest size of a value in float64: beyond it squares and their sums overflow."""
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
    """A client that takes no part in the round, and why; both fit to be shown and stored."""

    client_id: ClientId
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    """The gate's answer: the round of those admitted (None if nobody is) and the rest."""

    round: Round | None
    rejected: tuple[Rejection, ...]
    layout: Layout


@dataclass(frozen=True, slots=True)
class Gate:
    """The admission check.

    Args:
        layout: names, shapes and dtypes that an update must have.
        known_clients: ids that may take part; None admits any id.
        max_examples: greatest number of examples that a client may claim.
        sends: whether clients send updates or whole models.
        spill: where updates go that are too large for memory; None keeps all of them there.
    """

    layout: Layout
    known_clients: frozenset[ClientId] | None = None
    max_examples: int = 1_000_000
    sends: Sends = "updates"
    spill: Spill | None = None

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
        global_params = global_params.detach()
        if expected is None:
            submissions = list(submissions)
            expected = len(submissions)
        spare = 1  # so that one too many is still told its own fault first
        shape = (expected + spare, self.layout.dim)
        matrix = (
            empty_matrix(*shape, self.layout.dtype)
            if self.spill is None
            else self.spill.empty(*shape, self.layout.dtype)
        )
        counts: dict[ClientId, int] = {}
        rejected: list[Rejection] = []
        for submission in submissions:
            row = matrix[len(counts)]
            reason = self._reason(submission, counts) or self._write(
                submission.content, global_params, row
            )
            release(row)
            if reason is None and len(counts) == expected:
                reason = f"round is full: expected at most {expected} updates"
            if reason is None:
                counts[plain_id(submission.client_id)] = int(submission.num_examples)
            else:
                rejected.append(reject(index, submission.client_id, reason))
        admitted = None
        if counts:
            admitted = Round(
                index,
                global_params,
                matrix[: len(counts)],
                torch.tensor(list(counts.values())),
                tuple(counts),
            )
        return Admission(admitted, tuple(rejected), self.layout)

    def screen(
        self,
        index: int,
        global_params: Float[Tensor, " dim"],
        updates: Float[Tensor, "clients dim"],
        claims: Sequence[Any],
        client_ids: Sequence[Any],
    ) -> Admission:
        """Check a matrix that is already there, as a simulator's workers have written it.

        Row j came from ``client_ids[j]``, which claims ``claims[j]`` examples: both may be anything
        at all. The round is built after the checks. When all pass, its matrix is ``updates``
        itself, without a copy. A matrix of another length or dtype than the layout's is an error
        of the caller.
        """
        have = (updates.shape[1], updates.dtype)
        if have != (self.layout.dim, self.layout.dtype):
            raise ValueError(
                f"the round is {have[1]} of dim={have[0]}, "
                f"the layout {self.layout.dtype} of dim={self.layout.dim}"
            )
        if not len(updates) == len(claims) == len(client_ids):
            raise ValueError(
                f"one claim and one id a client: clients={len(updates)}, "
                f"claims={len(claims)}, client_ids={len(client_ids)}"
            )
        counts: dict[ClientId, int] = {}
        rows: list[int] = []
        rejected: list[Rejection] = []
        for row, (client_id, claimed) in enumerate(zip(client_ids, claims, strict=True)):
            submission = Submission(client_id, updates[row], claimed)
            reason = self._reason(submission, counts) or out_of_range(updates[row])
            if reason:
                rejected.append(reject(index, client_id, reason))
            else:
                counts[plain_id(client_id)] = int(claimed)
                rows.append(row)
        admitted = None
        if counts:
            admitted = Round(
                index,
                global_params.detach(),
                updates[torch.tensor(rows)] if rejected else updates,
                torch.tensor(list(counts.values())),
                tuple(counts),
            )
        return Admission(admitted, tuple(rejected), self.layout)

    def _reason(self, submission: Submission, admitted: Collection[ClientId]) -> str | None:
        """Check who sends and what it claims."""
        client_id = submission.client_id
        if isinstance(client_id, bool) or not isinstance(client_id, int | np.integer | str):
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
        if isinstance(claimed, bool) or not isinstance(claimed, int | np.integer):
            return f"num_examples must be an integer, got {claimed!r:.40}"
        if not 1 <= claimed <= self.max_examples:
            size = int(claimed).bit_length()
            shown = claimed if size <= 64 else f"a number of {size} bits"
            return f"num_examples must be in 1..{self.max_examples}, got {shown}"
        return None

    def _write(
        self, content: Any, global_params: Float[Tensor, " dim"], row: Float[Tensor, " dim"]
    ) -> str | None:
        """Write the content into its row, or say why it cannot be."""
        try:
            return self._copy(content, global_params, row) or out_of_range(row)
        except Exception as error:
            return f"cannot be read: {type(error).__name__}: {error}"

    def _copy(
        self, content: Any, global_params: Float[Tensor, " dim"], row: Float[Tensor, " dim"]
    ) -> str | None:
        """Write the content into its row as an update: one pass over it either way."""
        base = global_params if self.sends == "models" else None
        if isinstance(content, Mapping):
            tensors: dict[str, Tensor] = {}
            for name, value in content.items():
                tensor = as_tensor(value)
                if not isinstance(name, str) or tensor is None:
                    return f"{name!r:.60} is not a named numeric array"
                tensors[name] = tensor
            if problem := self.layout.mismatch(tensors):
                return problem
            self.layout.flatten(tensors, out=row, less=base)
        else:
            vector = as_tensor(content)
            if vector is None:
                return f"expected a numeric array or named arrays, got {type(content).__name__}"
            if vector.shape != row.shape:
                return f"update has shape {tuple(vector.shape)}, expected {tuple(row.shape)}"
            if vector.dtype != row.dtype:
                return f"update has dtype {vector.dtype}, expected {row.dtype}"
            if base is None:
                row.copy_(vector)
            else:
                torch.sub(vector, base, out=row)
        return None


def as_tensor(value: Any) -> Tensor | None:
    """Return a dense tensor over the value's memory, or None if it is not a numeric array."""
    if isinstance(value, Tensor):
        dense = value.layout == torch.strided and not value.is_nested and not value.is_meta
        return value.detach() if dense else None
    if isinstance(value, np.ndarray) and value.dtype.kind in "biuf" and value.dtype.isnative:
        writable = value if value.flags.writeable else value.copy()
        return torch.from_numpy(np.ascontiguousarray(writable).reshape(value.shape))
    return None


def out_of_range(row: Float[Tensor, " dim"]) -> str | None:
    """Say how many values are NaN, infinite or, in float64, too large to be squared.

    A finite sum proves that all terms are; only a row whose sum is not is looked at closely.
    """
    if not bool(row.sum().isfinite()):
        bad = int((~row.isfinite()).sum())
        if bad:
            return f"{bad} of {len(row)} values are not finite"
    if row.dtype == torch.float64 and bool((row.abs() > LARGEST).any()):
        return f"values must be within +-{LARGEST:g}"
    return None


def plain_id(client_id: Any) -> ClientId:
    """Return an id as a plain integer or text; of anything else, what it looks like."""
    if isinstance(client_id, int | np.integer) and not isinstance(client_id, bool):
        return int(client_id)
    return client_id if isinstance(client_id, str) else legible(repr(client_id))


def legible(text: str, most: int = 200) -> str:
    """Return foreign text in one short line, without anything that a terminal or log obeys."""
    shown = "".join(c if c.isprintable() else "?" for c in text[:most])
    return shown if len(text) <= most else shown + " ..."


def reject(index: int, client_id: Any, reason: str) -> Rejection:
    """Log a rejection and return it."""
    plain = plain_id(client_id)
    shown = legible(plain) if isinstance(plain, str) else plain
    rejection = Rejection(shown, legible(reason))
    logger.warning(
        "round %d: client %.80r rejected: %s", index, rejection.client_id, rejection.reason
    )
    return rejection
