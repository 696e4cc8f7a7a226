"""The detector's ranking of D_d in a round: gamma, what is marked, and whether it makes sense."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool
from torch import Tensor

from datadefense.core.defense_set import DefenseSet
from datadefense.defenses.datadefense.client_losses import split
from datadefense.defenses.datadefense.detector import Psi, gamma, standardise
from datadefense.defenses.datadefense.losses import PerExample
from datadefense.defenses.datadefense.poison_share import PoisonShare, estimate_poison_share


@dataclass(frozen=True, slots=True)
class MarkedShare:
    """How much of the defense set is marked as poisoned.

    Args:
        beta: the share; auto: estimated.
        least: share that is marked where the estimate is lower, or there is none.
        fewest_known: known clean examples below which there is no estimate.
    """

    beta: float | Literal["auto"]
    least: float
    fewest_known: int


@dataclass(frozen=True, slots=True, eq=False)
class Ranking:
    """What the detector says of each example.

    Args:
        scores: gamma.
        marked: D_dp; the others are D_dc.
        first_margins: by the ids of the examples that the set has now.
        early: the same in the order of the examples.
        share: the estimate of the poisoned share, where beta is auto.
    """

    scores: PerExample
    marked: Bool[Tensor, " examples"]
    first_margins: dict[str, float]
    early: PerExample
    share: PoisonShare | None

    def has_collapsed(self, known: Bool[Tensor, " examples"]) -> bool:
        """Say whether gamma is flat, or no lower on known clean examples than on the others."""
        if bool((self.scores == self.scores[0]).all()):
            return True
        if not 0 < int(known.sum()) < len(self.scores):
            return False
        return bool(self.scores[known].mean() >= self.scores[~known].mean())


def rank(
    psi: Psi,
    owned: DefenseSet,
    first_margins: Mapping[str, float],
    margins: PerExample,
    wanted: MarkedShare,
) -> Ranking:
    """Rank D_d by gamma and mark the wanted share of it; new examples get today's margins."""
    now = dict(zip(owned.ids, margins.tolist(), strict=True))
    first = {name: first_margins.get(name, value) for name, value in now.items()}
    early = torch.tensor(list(first.values()))
    with torch.no_grad():
        scores = gamma(psi, standardise(owned.features), owned.examples.labels)
    estimate = None
    if wanted.beta == "auto":
        estimate = estimate_poison_share(early, owned.known_clean, wanted.fewest_known)
        beta = wanted.least if estimate is None else max(wanted.least, float(estimate.share))
    else:
        beta = float(wanted.beta)
    return Ranking(scores, split(scores, beta, owned.known_clean), first, early, estimate)
