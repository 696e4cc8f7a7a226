"""Sure poison: examples whose labels the first model finds absurd, piled up under one label."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.core.examples import Examples
from datadefense.core.server import Server
from datadefense.defenses.datadefense.importance import PerClient
from datadefense.defenses.datadefense.losses import Labels, PerExample

FEWEST = 5
"""Known clean examples below which nothing is sure."""
PRIOR = 10
"""Examples that the overall share counts for beside the known clean ones of a label."""


@dataclass(frozen=True, slots=True, eq=False)
class SurePoison:
    """The surely poisoned part of a defense set, and what the first model knew of it.

    What a model *knows* is its mean probability of these examples' labels.
    """

    marked: Bool[Tensor, " examples"]
    examples: Examples
    reference: float

    @classmethod
    def of(
        cls, examples: Examples, marked: Bool[Tensor, " examples"], first_margins: PerExample
    ) -> "SurePoison":
        """Take the marked examples; a margin is the log-odds of the label."""
        part = examples.take(marked.nonzero().flatten())
        first = first_margins[marked].to(torch.float64).sigmoid()
        return cls(marked, part, float(first.mean()) if len(first) else 0.0)

    def __len__(self) -> int:
        return len(self.examples)

    def known(self, server: Server, params: Float[Tensor, " dim"]) -> float:
        """Return what a model knows, by a forward pass over these examples only."""
        if not len(self):
            return 0.0
        with torch.no_grad():
            z = server.logits(params, self.examples.inputs)
        labels = self.examples.labels[:, None]
        return float(z.softmax(1).gather(1, labels).to(torch.float64).mean())

    def known_by(self, losses: Float[Tensor, "models examples"]) -> PerClient:
        """Return what each model knows, given its cross-entropies on the whole defense set."""
        if not len(self):
            return torch.zeros(len(losses), dtype=torch.float64)
        return losses[:, self.marked].to(torch.float64).neg().exp().mean(1)


def suspicion(margins: PerExample, known_clean: Bool[Tensor, " examples"]) -> PerExample:
    """Return the share of known clean examples whose labels the model finds less absurd: 0 to 1.

    Where none is known to be clean every example scores 1/2.
    """
    clean = margins[known_clean].sort().values
    if not len(clean):
        return torch.full_like(margins, 0.5)
    below = torch.searchsorted(clean, margins, right=True)
    return (len(clean) - below).to(margins.dtype) / len(clean)


def sure_poison(
    margins: PerExample,
    labels: Labels,
    known_clean: Bool[Tensor, " examples"],
    *,
    share: float = 0.1,
    chance: float = 3e-5,
) -> Bool[Tensor, " examples"]:
    r"""Return which examples are surely poisoned, by the first model's margins.

    An example is *low* if its margin (the log-odds of its label) is below the ``share`` quantile q
    of the known clean ones. The clean examples among the others are like the known ones, so about
    that share of them is low, spread over the labels. A backdoor has a target, so its examples pile
    up under one label. The k_y low ones of the n_y examples of label y that are not known to be
    clean are surely poisoned if so many are less likely by luck than ``chance``,

    .. math::
        P\bigl[\mathrm{Bin}(n_y, r_y) \ge k_y\bigr] < \mathrm{chance}, \qquad
        r_y = \max\Bigl(q, \frac{l_y + 10 q}{m_y + 10}\Bigr)

    and they are at least half as many as of the label that has most. Of the m_y known clean
    examples of y, l_y are low: one label may be harder than the others. None is sure where fewer
    than 5 are known to be clean.
    """
    sure = torch.zeros_like(known_clean)
    if int(known_clean.sum()) < FEWEST:
        return sure
    low = margins < torch.quantile(margins[known_clean].to(torch.float64), share)
    piles: dict[int, int] = {}
    for label in torch.unique(labels[~known_clean & low]).tolist():
        here = labels == label
        known, known_low = int((here & known_clean).sum()), int((here & known_clean & low).sum())
        rate = max(share, (known_low + PRIOR * share) / (known + PRIOR))
        others, count = int((here & ~known_clean).sum()), int((here & ~known_clean & low).sum())
        if tail(others, rate, count) < chance:
            piles[label] = count
    for label, count in piles.items():
        if 2 * count >= max(piles.values()):
            sure |= (labels == label) & low & ~known_clean
    return sure


def tail(trials: int, rate: float, least: int) -> float:
    """Return how likely at least so many of the trials succeed, each at the rate.

    >>> tail(2, 0.5, 1)
    0.75
    """
    wins = torch.arange(least, trials + 1, dtype=torch.float64)
    total = torch.tensor(trials + 1.0, dtype=torch.float64)
    ways = torch.lgamma(total) - torch.lgamma(wins + 1) - torch.lgamma(total - wins)
    logs = ways + wins * math.log(rate) + (trials - wins) * math.log1p(-rate)
    return round(float(logs.exp().sum()), 12)
