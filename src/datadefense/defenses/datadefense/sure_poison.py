"""Sure poison: examples whose labels the first model finds very unlikely, many with one label."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.core.client_models import of_each_client
from datadefense.core.examples import Examples
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.defenses.datadefense.client_losses import WORST, in_parts
from datadefense.defenses.datadefense.importance import PerClient
from datadefense.defenses.datadefense.losses import Labels, PerExample, l_c


@dataclass(frozen=True, slots=True)
class Criterion:
    """When examples count as surely poisoned; `sure_poison` has the formula.

    Args:
        low_share: share of the known clean examples that is low by definition.
        chance: probability of so many low examples by luck, below which they are sure.
        fewest_known: known clean examples below which nothing is sure.
        prior: examples that ``low_share`` counts for, beside the known clean ones of a label.
        pile_share: least count of a label's low examples, as a share of the largest count.
    """

    low_share: float
    chance: float
    fewest_known: int
    prior: int
    pile_share: float


@dataclass(frozen=True, slots=True, eq=False)
class SurePoison:
    """The surely poisoned part of a defense set, and what the first model knew of it.

    What a model *knows* of it is the model's mean probability of these examples' labels.
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
        """Return what a model knows, by a forward pass over these examples only.

        Not a number where its loss on one of them is not finite, or huge.
        """
        if not len(self):
            return 0.0
        with torch.no_grad():
            parts = in_parts(self.examples.inputs)
            z = torch.cat([server.logits(params, part) for part in parts])
            losses = l_c(z, self.examples.labels).to(torch.float64)
        if not bool((losses < WORST).all()):
            return math.nan
        return float(losses.neg().exp().mean())

    def known_by(self, server: Server, round: Round) -> PerClient:
        """Return what each client's model knows; 0 where there is nothing to know."""
        if not len(self):
            return torch.zeros(round.num_clients, dtype=torch.float64)
        known = of_each_client(server, round, lambda params: self.known(server, params))
        return torch.tensor(known, dtype=torch.float64)

    def slope(self, server: Server, params: Float[Tensor, " dim"]) -> Float[Tensor, " dim"]:
        """Return the gradient of what a model knows; 0 where a model has none."""
        with torch.enable_grad():
            free = params.detach().clone().requires_grad_(True)
            z = server.logits(free, self.examples.inputs)
            known = z.softmax(1).gather(1, self.examples.labels[:, None]).mean()
            if not known.requires_grad:
                return torch.zeros_like(params)
            (g,) = torch.autograd.grad(known, free)
        return g


def suspicion(margins: PerExample, known_clean: Bool[Tensor, " examples"]) -> PerExample:
    """Return the share of known clean examples whose labels the model finds likelier: 0 to 1.

    Where no example is known to be clean, every example scores 1/2.
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
    criterion: Criterion,
) -> Bool[Tensor, " examples"]:
    r"""Return which examples are surely poisoned, by the first model's margins.

    An example is *low* if its margin (the log-odds of its label) is below the q quantile of the
    known clean ones, q = ``low_share``. The clean examples among the others resemble the known
    ones, so about that share of them is low, spread over the labels. A backdoor has a target, so
    its examples have one label. Of label y, n_y examples are not known to be clean and k_y of those
    are low; these k_y are surely poisoned if so many are improbable by luck,

    .. math::
        P\bigl[\mathrm{Bin}(n_y, r_y) \ge k_y\bigr] < \mathrm{chance}, \qquad
        r_y = \max\Bigl(q, \frac{l_y + p q}{m_y + p}\Bigr)

    and if k_y is at least ``pile_share`` of the largest such count of any label. Of the m_y known
    clean examples of y, l_y are low (one label may be harder than the others); p = ``prior``.
    Nothing is sure where fewer than ``fewest_known`` examples are known to be clean.
    """
    share, prior = criterion.low_share, criterion.prior
    sure = torch.zeros_like(known_clean)
    if int(known_clean.sum()) < criterion.fewest_known:
        return sure
    low = margins < torch.quantile(margins[known_clean].to(torch.float64), share)
    piles: dict[int, int] = {}
    for label in torch.unique(labels[~known_clean & low]).tolist():
        here = labels == label
        known, known_low = int((here & known_clean).sum()), int((here & known_clean & low).sum())
        rate = max(share, (known_low + prior * share) / (known + prior))
        others, count = int((here & ~known_clean).sum()), int((here & ~known_clean & low).sum())
        if tail(others, rate, count) < criterion.chance:
            piles[label] = count
    for label, count in piles.items():
        if count >= criterion.pile_share * max(piles.values()):
            sure |= (labels == label) & low & ~known_clean
    return sure


def tail(trials: int, rate: float, least: int) -> float:
    """Return the probability that at least so many of the trials succeed, each at the rate.

    >>> tail(2, 0.5, 1)
    0.75
    """
    wins = torch.arange(least, trials + 1, dtype=torch.float64)
    total = torch.tensor(trials + 1.0, dtype=torch.float64)
    ways = torch.lgamma(total) - torch.lgamma(wins + 1) - torch.lgamma(total - wins)
    logs = ways + wins * math.log(rate) + (trials - wins) * math.log1p(-rate)
    return round(float(logs.exp().sum()), 12)
