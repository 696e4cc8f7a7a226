"""The gate: every update passes one admission check before any defense sees it.

Any client may be an attacker. What it sends may have a wrong shape or values that are not finite,
and it may come twice or from a stranger. Whatever fails is rejected with a reason, and the round
goes on with the rest. Nothing is ever unpickled: the gate takes tensors and arrays only.
"""

import logging
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Literal, get_args

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.errors import InputError
from datadefense.core.foreign import (
    LONGEST_ID,
    error_text,
    kind,
    message,
    plain_id,
    plain_integer,
    sanitize,
    shown,
)
from datadefense.core.predictor import Layout
from datadefense.core.round import ClientId, Round
from datadefense.core.settings import SettingsError, check_choice, check_int
from datadefense.kernels.growing import Rows
from datadefense.kernels.spill import Spill, release

logger = logging.getLogger(__name__)

LARGEST = 1e100
"""Greatest size of a value in float64: beyond it squares and their sums overflow."""
MOST_EXAMPLES = 2**40
"""Greatest bound on a client's count: the sum over a round's clients is exact in 64 bits."""
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
class Claim:
    """Who sends and how many examples it has, once both are checked: plain values."""

    client_id: ClientId
    num_examples: int


@dataclass(frozen=True, slots=True)
class Rejection:
    """A client that takes no part in the round, and why; both fit to be shown and stored."""

    client_id: ClientId
    reason: str


@dataclass(frozen=True, slots=True, eq=False)
class Admission:
    """The gate's answer: the round of those admitted (None if nobody is) and the rest.

    ``passed`` says of each submission, in the order they came, whether it was admitted; where it is
    empty, those that were came first.
    """

    round: Round | None
    rejected: tuple[Rejection, ...]
    layout: Layout
    passed: tuple[bool, ...] = ()


@dataclass(frozen=True, slots=True)
class Gate:
    """The admission check.

    Args:
        layout: names, shapes and dtypes that an update must have.
        known_clients: ids that may take part; None admits any id.
        max_examples: greatest number of examples that a client may claim, at most 2^40.
        sends: whether clients send updates or whole models.
        spill: where updates go that are too large for memory; None keeps all of them there.
    """

    layout: Layout
    known_clients: frozenset[ClientId] | None = None
    max_examples: int = 1_000_000
    sends: Sends = "updates"
    spill: Spill | None = None

    def __post_init__(self) -> None:
        check_int("max_examples", self.max_examples, 1)
        if self.max_examples > MOST_EXAMPLES:
            raise SettingsError(
                f"max_examples must be <= {MOST_EXAMPLES}, got {shown(self.max_examples)}"
            )
        check_choice("sends", self.sends, get_args(Sends))

    def admit(
        self,
        index: int,
        global_params: Float[Tensor, " dim"],
        submissions: Iterable[Submission],
        expected: int | None = None,
    ) -> Admission:
        """Check the submissions one by one and stack those that pass, in the order they came.

        Each is copied once, straight into its row. ``expected`` is how many may come at the most,
        which lets the iterable be lazy: one submission is held in memory at a time. Memory is taken
        for those that pass, not for those expected: of a large matrix, up to twice as much.
        """
        global_params = global_params.detach()
        if expected is None:
            submissions = list(submissions)
            expected = len(submissions)
        spare = 1  # so that one too many is still error_text its own fault first
        rows = Rows(expected + spare, self.layout.dim, self.layout.dtype, self.spill)
        counts: dict[ClientId, int] = {}
        rejected: list[Rejection] = []
        passed: list[bool] = []
        for submission in submissions:
            answer = self._take(submission, global_params, counts, rows)
            if isinstance(answer, Claim) and len(counts) == expected:
                answer = f"round is full: expected at most {expected} updates"
            passed.append(isinstance(answer, Claim))
            if isinstance(answer, Claim):
                counts[answer.client_id] = answer.num_examples
            else:
                rejected.append(reject(index, submission.client_id, answer))
        admitted = None
        if counts:
            admitted = Round(
                index,
                global_params,
                rows.first(len(counts)),
                torch.tensor(list(counts.values())),
                tuple(counts),
                self.layout,
            )
        return Admission(admitted, tuple(rejected), self.layout, tuple(passed))

    def _take(
        self,
        submission: Submission,
        global_params: Float[Tensor, " dim"],
        admitted: Collection[ClientId],
        rows: Rows,
    ) -> Claim | str:
        """Check one client and write what it sent into the first row that is free."""
        row = rows.row(len(admitted))
        write = partial(self._write, submission.content, global_params, row)
        answer = self._judge(submission, admitted, write)
        release(row)
        return answer

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
            raise InputError(
                f"the round is {have[1]} of dim={have[0]}, "
                f"the layout {self.layout.dtype} of dim={self.layout.dim}"
            )
        if not len(updates) == len(claims) == len(client_ids):
            raise InputError(
                f"one claim and one id a client: clients={len(updates)}, "
                f"claims={len(claims)}, client_ids={len(client_ids)}"
            )
        counts: dict[ClientId, int] = {}
        rows: list[int] = []
        rejected: list[Rejection] = []
        passed: list[bool] = []
        for row, (client_id, claimed) in enumerate(zip(client_ids, claims, strict=True)):
            submission = Submission(client_id, updates[row], claimed)
            answer = self._judge(submission, counts, partial(out_of_range, updates[row]))
            passed.append(isinstance(answer, Claim))
            if isinstance(answer, Claim):
                counts[answer.client_id] = answer.num_examples
                rows.append(row)
            else:
                rejected.append(reject(index, client_id, answer))
        admitted = None
        if counts:
            admitted = Round(
                index,
                global_params.detach(),
                updates[torch.tensor(rows)] if rejected else updates,
                torch.tensor(list(counts.values())),
                tuple(counts),
                self.layout,
            )
        return Admission(admitted, tuple(rejected), self.layout, tuple(passed))

    def _judge(
        self,
        submission: Submission,
        admitted: Collection[ClientId],
        take: Callable[[], str | None],
    ) -> Claim | str:
        """Check one client: who it is, what it claims, and last what it sent, which ``take`` reads.

        Return its claim, or the reason to turn it away. Whatever goes wrong with what a client
        sent is such a reason, foreseen here or not: nothing of it ends the round.
        """
        try:
            claim = self._claim(submission, admitted)
            return claim if isinstance(claim, str) else take() or claim
        except Exception as error:
            return f"cannot be read: {error_text(error)}"

    def _claim(self, submission: Submission, admitted: Collection[ClientId]) -> Claim | str:
        client_id = plain_id(submission.client_id)
        if client_id is None:
            return (
                f"client id must be an integer or text, of 64 bits or 1..{LONGEST_ID} "
                f"printable characters, got {shown(submission.client_id)}"
            )
        if self.known_clients is not None and client_id not in self.known_clients:
            return "unknown client"
        if client_id in admitted:
            return "second update of this client in the round"
        if isinstance(submission.content, Exception):
            return message(submission.content)
        count = self._count(submission.num_examples)
        return count if isinstance(count, str) else Claim(client_id, count)

    def _count(self, claimed: Any) -> int | str:
        if claimed is None:
            return "num_examples is missing"
        count = plain_integer(claimed)
        if count is None:
            return f"num_examples must be an integer, got {shown(claimed)}"
        if not 1 <= count <= self.max_examples:
            return f"num_examples must be in 1..{self.max_examples}, got {shown(count)}"
        return count

    def _write(
        self, content: Any, global_params: Float[Tensor, " dim"], row: Float[Tensor, " dim"]
    ) -> str | None:
        """Write the content into its row, or say why it cannot be."""
        return self._copy(content, global_params, row) or out_of_range(row)

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
                    return f"{shown(name, 60)} is not a named numeric array"
                tensors[name] = tensor
            if problem := self.layout.mismatch(tensors):
                return problem
            self.layout.flatten(tensors, out=row, less=base)
        else:
            vector = as_tensor(content)
            if vector is None:
                return f"expected a numeric array or named arrays, got {kind(content)}"
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
        return value.detach().cpu() if dense else None
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


def reject(index: int, client_id: Any, reason: str) -> Rejection:
    """Log a rejection and return it, with an id that is fit to be shown whatever it was."""
    plain = plain_id(client_id)
    if plain is None:
        plain = shown(client_id, 200)
    rejection = Rejection(plain, sanitize(reason))
    logger.warning(
        "round %d: client %.80r rejected: %s", index, rejection.client_id, rejection.reason
    )
    return rejection
