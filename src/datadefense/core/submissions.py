"""Submissions of a round as a server with a loop of its own has them: a list or a mapping.

What is told apart here is the server's own part: how the round is handed over. What is wrong with
one client's content or count is for the gate.
"""

import operator
from collections.abc import Collection, Iterable, Mapping
from typing import Any

import numpy as np
from torch import Tensor, nn

from datadefense.core.errors import InputError
from datadefense.core.foreign import shown
from datadefense.core.gate import Submission
from datadefense.core.round import ClientId

Counts = Mapping[ClientId, Any] | Iterable[Any] | int | None


def submissions_of(
    updates: Mapping[ClientId, Any] | Iterable[Any], num_examples: Counts, names: Collection[str]
) -> list[Submission]:
    """Return what clients sent with their ids and counts, unchecked.

    Args:
        updates: what each client sent, by its id, or a list (ids are then 0, 1, ...).
        num_examples: see `counts_of`.
        names: those of the model's tensors, by which one client's state dict is told from a round.
    """
    sent = _by_client(updates, names)
    counts = counts_of(num_examples, list(sent))
    return [
        Submission(client_id, content, counts[client_id]) for client_id, content in sent.items()
    ]


def _by_client(updates: object, names: Collection[str]) -> dict[ClientId, Any]:
    if isinstance(updates, Mapping):
        if updates and all(isinstance(key, str) and key in names for key in updates):
            raise InputError("this is one client's state dict: give a list of them")
        return dict(updates)
    if isinstance(updates, Tensor | np.ndarray) and updates.ndim < 2:
        raise InputError("this is one client's vector: give a list of them")
    if isinstance(updates, str | bytes | nn.Module) or not isinstance(updates, Iterable):
        raise InputError(
            "what clients sent must be a list, or a mapping from their ids, of state dicts or "
            f"vectors, got {shown(updates)}"
        )
    return dict(enumerate(updates))


def counts_of(num_examples: object, clients: list[ClientId]) -> dict[ClientId, Any]:
    """Return the count of each client that sent something; None where there is none.

    One whole number is for all; a list, or a vector of integers, has one a client, in their order;
    a mapping has them by id, and what it has for ids that sent nothing is passed over. None gives
    all the same.
    """
    if num_examples is None:
        return dict.fromkeys(clients, 1)
    if isinstance(num_examples, Mapping):
        if clients and num_examples and not any(one in num_examples for one in clients):
            raise InputError(
                f"num_examples has no count for any client: its ids are like "
                f"{shown(next(iter(num_examples)))}, those that sent like {shown(clients[0])}"
            )
        return {client: _plain(num_examples.get(client)) for client in clients}
    listed = _listed(num_examples)
    if isinstance(listed, int):
        return dict.fromkeys(clients, listed)
    if len(listed) != len(clients):
        raise InputError(f"one count a client: got {len(clients)} updates, {len(listed)} counts")
    return dict(zip(clients, listed, strict=True))


def _listed(num_examples: object) -> int | list[Any]:
    """Return one number for all, or a list of them."""
    if isinstance(num_examples, Tensor | np.ndarray):
        dtype = str(num_examples.dtype).removeprefix("torch.")
        if num_examples.ndim > 1 or not dtype.removeprefix("u").startswith("int"):
            raise InputError(
                "num_examples must be integers, one a client or one for all, got "
                f"{dtype} of shape {tuple(num_examples.shape)}"
            )
        return num_examples.tolist()
    try:
        return operator.index(num_examples)  # type: ignore[arg-type] # that is the question
    except TypeError:
        pass
    if isinstance(num_examples, str | bytes) or not isinstance(num_examples, Iterable):
        raise InputError(
            "num_examples must be an integer, or one integer a client (a list, a vector or a "
            f"mapping by id), got {shown(num_examples)}"
        )
    return [_plain(count) for count in num_examples]


def _plain(count: Any) -> Any:
    """Return a single integer of a tensor or array as a plain one; the gate judges the rest."""
    if isinstance(count, Tensor | np.ndarray) and count.ndim == 0:
        return count.item()
    return count
