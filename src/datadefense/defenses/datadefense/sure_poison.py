"""Sure poison: examples whose labels the first model finds absurd, piled up under one label."""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from datadefense.defenses.datadefense.importance import PerClient
from datadefense.defenses.datadefense.losses import Labels, PerExample
from datadefense.examples import Examples
from datadefense.server import Server

FEWEST = 5
"""Known clean examples below which nothing is sure."""


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
    deviations: float = 4.0,
) -> Bool[Tensor, " examples"]:
    r"""Return which examples are surely poisoned, by the first model's margins.

    An example is *low* if its margin (the log-odds of its label) is below the ``share`` quantile q
    of the known clean ones. The clean examples among the others are like the known ones, so about
    that share of them is low, spread over the labels. A backdoor has a target, so its examples pile
    up under one label. The low examples of label y are surely poisoned if there are more of them
    than chance explains, with n_y examples of y that are not known to be clean:

    .. math::
        k_y > n_y r_y + z \sqrt{n_y r_y (1 - r_y)}, \qquad
        r_y = \max\Bigl(q, \frac{\text{low and known of } y + 1}{\text{known of } y + 2}\Bigr)

    (r_y because one label may be harder than the others), and at least half as many as of the label
    that has most. None is sure where fewer than 5 are known to be clean.
    """
    sure = torch.zeros_like(known_clean)
    if int(known_clean.sum()) < FEWEST:
        return sure
    low = margins < torch.quantile(margins[known_clean].to(torch.float64), share)
    piles: dict[int, int] = {}
    for label in torch.unique(labels[~known_clean & low]).tolist():
        here = labels == label
        known = int((here & known_clean).sum())
        chance = max(share, (int((here & known_clean & low).sum()) + 1) / (known + 2))
        if known == 0:
            chance = share
        others, count = int((here & ~known_clean).sum()), int((here & ~known_clean & low).sum())
        if count > others * chance + deviations * math.sqrt(others * chance * (1 - chance)):
            piles[label] = count
    for label, count in piles.items():
        if 2 * count >= max(piles.values()):
            sure |= (labels == label) & low & ~known_clean
    return sure
