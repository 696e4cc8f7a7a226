"""The detector's opinion of D_d in a round: gamma, who is marked, and whether it can be trusted."""

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

LEAST_MARKED = 0.2
"""Share of the defense set that is marked where the estimate is lower, or there is none."""


@dataclass(frozen=True, slots=True, eq=False)
class Opinion:
    """What the detector thinks of each example.

    Args:
        scores: gamma.
        marked: D_dp; the others are D_dc.
        first_margins: by the ids of the examples that the set has now.
        early: the same in the order of the examples.
        share: the estimate of the poisoned share, where it is asked for.
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


def opinion_of(
    psi: Psi,
    owned: DefenseSet,
    first_margins: Mapping[str, float],
    margins: PerExample,
    beta: float | Literal["auto"],
) -> Opinion:
    """Rank D_d and mark the top ``beta`` of it; examples that are new get today's margins."""
    now = dict(zip(owned.ids, margins.tolist(), strict=True))
    first = {one: first_margins.get(one, value) for one, value in now.items()}
    early = torch.tensor(list(first.values()))
    with torch.no_grad():
        scores = gamma(psi, standardise(owned.features), owned.examples.labels)
    share = None
    if beta == "auto":
        share = estimate_poison_share(early, owned.known_clean)
        wanted = LEAST_MARKED if share is None else max(LEAST_MARKED, float(share.share))
    else:
        wanted = float(beta)
    return Opinion(scores, split(scores, wanted, owned.known_clean), first, early, share)
