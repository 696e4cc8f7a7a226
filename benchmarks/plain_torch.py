"""The rules as one would write them in plain torch, on the matrix of updates.

They return the update, not the new model. Not all are the same statistic, nor as exact: see each.
"""

from collections.abc import Callable, Mapping

from torch import Tensor

Plain = Callable[[Tensor, Tensor, int], Tensor]
"""``plain(updates [clients, dim], shares [clients], num_malicious) -> update [dim]``."""


def weighted_mean(updates: Tensor, shares: Tensor, _num_malicious: int) -> Tensor:
    """Mean by shares; for the clipping rules too, whose factors are not reckoned here."""
    return shares @ updates


def krum_scores(updates: Tensor, num_malicious: int) -> Tensor:
    """Krum's scores by a float32 Gram matrix, which is off by 1e-3 at ten million columns."""
    gram = updates @ updates.T
    squared = gram.diagonal()
    distances = squared[:, None] + squared[None, :] - 2 * gram
    nearest = distances.topk(len(updates) - num_malicious - 1, largest=False)
    return nearest.values.sum(1)


def krum(updates: Tensor, _shares: Tensor, num_malicious: int) -> Tensor:
    """The update with the least score."""
    return updates[int(krum_scores(updates, num_malicious).argmin())]


def multi_krum(updates: Tensor, shares: Tensor, num_malicious: int) -> Tensor:
    """Mean by shares of the n - f with the least scores."""
    scores = krum_scores(updates, num_malicious)
    chosen = scores.topk(len(updates) - num_malicious, largest=False).indices
    return shares[chosen] / shares[chosen].sum() @ updates[chosen]


def bulyan(updates: Tensor, _shares: Tensor, num_malicious: int) -> Tensor:
    """Scored once as in Flower's, and around the lower median."""
    count = len(updates) - 2 * num_malicious
    chosen = krum_scores(updates, num_malicious).topk(count, largest=False).indices
    rows = updates[chosen]
    away = (rows - rows.median(0).values).abs_()
    nearest = away.topk(count - 2 * num_malicious, dim=0, largest=False).indices
    return rows.gather(0, nearest).mean(0)


def trimmed_mean(updates: Tensor, _shares: Tensor, num_malicious: int) -> Tensor:
    """Sort, cut, average."""
    return updates.sort(0).values[num_malicious : len(updates) - num_malicious].mean(0)


def median(updates: Tensor, _shares: Tensor, _num_malicious: int) -> Tensor:
    """The lower of the two in the middle where n is even: not the same statistic."""
    return updates.median(0).values


PLAIN: Mapping[str, Plain] = {
    "fedavg": weighted_mean,
    "krum": krum,
    "multi-krum": multi_krum,
    "bulyan": bulyan,
    "trimmed-mean": trimmed_mean,
    "median": median,
    "ndc": weighted_mean,
    "ndc-adaptive": weighted_mean,
    "weak-dp": weighted_mean,
}
