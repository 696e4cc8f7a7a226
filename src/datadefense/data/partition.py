"""Partition: the examples divided among the clients, at random, by class or by user.

Every function returns one index tensor a client, in ascending order; each example is in exactly
one of them. All randomness comes from the generator that is passed.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Bool, Float64, Int64
from torch import Tensor

from datadefense.core.errors import InputError
from datadefense.core.settings import check_float, check_int


def iid(num_examples: int, num_clients: int, generator: torch.Generator) -> list[Tensor]:
    """Deal the examples at random; sizes differ by at most one.

    >>> shards = iid(10, 3, torch.Generator().manual_seed(0))
    >>> [len(shard) for shard in shards]
    [4, 3, 3]
    """
    check_int("num_clients", num_clients, 1)
    if num_clients > num_examples:
        raise InputError(
            "an example for every client needs num_clients <= examples, "
            f"got num_clients={num_clients}, {num_examples} examples"
        )
    owner = torch.empty(num_examples, dtype=torch.int64)
    order = torch.randperm(num_examples, generator=generator)
    owner[order] = torch.arange(num_examples) % num_clients
    return _shards(owner, num_clients)


def dirichlet(
    labels: Int64[Tensor, " examples"],
    num_clients: int,
    alpha: float,
    generator: torch.Generator,
    min_examples: int = 10,
) -> list[Tensor]:
    r"""Deal each class in shares :math:`p \sim Dirichlet(\alpha)` over the clients.

    Class by class, clients that hold :math:`\ge N / K` examples are passed over and the other
    shares rescaled, as in Wang et al. 2020 and Li et al. 2021 ("Federated Learning on Non-IID Data
    Silos"). Small ``alpha``: a client holds few classes.

    Differs from theirs in what happens to clients with fewer than ``min_examples``: they draw
    everything again until there is none, which for a small ``alpha`` may never be; here the poor
    are filled up from the rich (see `_fill_up`), so it always ends, and at the first draw.

    Args:
        labels: the class of each example.
        num_clients: K.
        alpha: concentration, > 0.
        generator: the only source of randomness.
        min_examples: what every client holds at least; 0 leaves the draw as it is.
    """
    check_int("num_clients", num_clients, 1)
    check_int("min_examples", min_examples, 0)
    check_float("alpha", alpha, above=0)
    if num_clients * min_examples > len(labels):
        raise InputError(
            "the examples must suffice: num_clients * min_examples <= examples, got "
            f"{num_clients} * {min_examples} = {num_clients * min_examples} > {len(labels)}"
        )
    order = torch.randperm(len(labels), generator=generator)
    by_class = order[labels[order].sort(stable=True).indices]
    class_sizes = torch.unique(labels, return_counts=True)[1]
    log_shares = _log_gamma_draws(len(class_sizes), num_clients, alpha, generator)
    owner = torch.empty_like(order)
    held = torch.zeros(num_clients, dtype=torch.int64)
    for members, row in zip(torch.split(by_class, class_sizes.tolist()), log_shares, strict=True):
        counts = _allot(len(members), row, held * num_clients < len(labels))
        owner[members] = torch.arange(num_clients).repeat_interleave(counts)
        held += counts
    return _shards(_fill_up(owner, labels, held, min_examples, generator), num_clients)


def by_user(
    users: Sequence[str | int], generator: torch.Generator, num_clients: int | None = None
) -> list[Tensor]:
    """Keep what one user wrote together.

    Without ``num_clients`` each user is a client, in order of first appearance. With it, whole
    users are dealt out at random; numbers of users a client differ by at most one.
    """
    if not users:
        raise InputError("by_user needs >= 1 example, got 0")
    numbers: dict[str | int, int] = {}
    author = torch.tensor([numbers.setdefault(user, len(numbers)) for user in users])
    if num_clients is None:
        return _shards(author, len(numbers))
    if num_clients > len(numbers):
        raise InputError(
            "a user for every client needs num_clients <= users, "
            f"got num_clients={num_clients}, {len(numbers)} users"
        )
    dealt = iid(len(numbers), num_clients, generator)
    client = torch.empty(len(numbers), dtype=torch.int64)
    for index, members in enumerate(dealt):
        client[members] = index
    return _shards(client[author], num_clients)


def _log_gamma_draws(
    rows: int, columns: int, alpha: float, generator: torch.Generator
) -> Float64[Tensor, "rows columns"]:
    r"""Return logarithms of Gamma(alpha) draws, which softmax turns into Dirichlet(alpha).

    :math:`\log \Gamma_\alpha = \log \Gamma_{\alpha + 1} + \log(U) / \alpha`: in log space nothing
    underflows, while for alpha = 0.001 nearly all plain draws are 0 and a row may be 0 / 0.
    """
    shape = torch.full((rows, columns), alpha + 1.0, dtype=torch.float64)
    uniform = torch.rand(rows, columns, dtype=torch.float64, generator=generator)
    draws = torch._standard_gamma(shape, generator=generator)
    logs = draws.log() + torch.log1p(-uniform) / alpha
    return logs.clamp(min=torch.finfo(torch.float64).min)


def _allot(
    size: int, log_shares: Float64[Tensor, " clients"], is_open: Bool[Tensor, " clients"]
) -> Int64[Tensor, " clients"]:
    """Split ``size`` examples among the open clients by shares; the numbers add up to ``size``."""
    shares = log_shares.masked_fill(~is_open, -torch.inf).softmax(0)
    bounds = (shares.cumsum(0) * size).long().clamp_(max=size)
    bounds[int(is_open.nonzero()[-1]) :] = size
    return bounds.diff(prepend=bounds.new_zeros(1))


def _fill_up(
    owner: Int64[Tensor, " examples"],
    labels: Int64[Tensor, " examples"],
    held: Int64[Tensor, " clients"],
    min_examples: int,
    generator: torch.Generator,
) -> Int64[Tensor, " examples"]:
    """Move examples until every client has ``min_examples``, each from the richest at that time.

    Which of its examples a client gives is random. What was given is sorted by class and handed
    out in runs, so that a client that was filled up holds few classes, like the others.
    """
    needs = (min_examples - held).clamp(min=0)
    missing = int(needs.sum())
    if missing == 0:
        return owner
    gifts = _from_the_largest(held, missing)
    shuffled = torch.randperm(len(owner), generator=generator)
    grouped = shuffled[owner[shuffled].sort(stable=True).indices]
    place = torch.arange(len(owner)) - (held.cumsum(0) - held)[owner[grouped]]
    given = grouped[place < gifts[owner[grouped]]]
    given = given[labels[given].sort(stable=True).indices]
    takers = torch.randperm(len(held), generator=generator)
    filled = owner.clone()
    filled[given] = takers.repeat_interleave(needs[takers])
    return filled


def _from_the_largest(held: Int64[Tensor, " clients"], count: int) -> Int64[Tensor, " clients"]:
    """Return how many each gives if ``count`` are taken one by one from the richest (first)."""
    low, high = 0, int(held.max())
    while low < high:  # the lowest level to which all may be cut
        level = (low + high) // 2
        if int((held - level).clamp(min=0).sum()) <= count:
            high = level
        else:
            low = level + 1
    gifts = (held - low).clamp(min=0)
    rest = count - int(gifts.sum())
    gifts[(held >= low).nonzero().flatten()[:rest]] += 1
    return gifts


def _shards(owner: Int64[Tensor, " examples"], num_clients: int) -> list[Tensor]:
    order = owner.sort(stable=True).indices
    return list(torch.split(order, torch.bincount(owner, minlength=num_clients).tolist()))
