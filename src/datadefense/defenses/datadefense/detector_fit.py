"""Fitting the detector: steps of Adam on its cost, at the start and in the rounds."""

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.optim.adam import adam

from datadefense.core.defense_set import DefenseSet
from datadefense.defenses.datadefense.detector import (
    Psi,
    g_2,
    min_max,
    standardise,
    y_hat_logits,
)
from datadefense.defenses.datadefense.detector_loss import L_pred, L_psi, V, l_consist
from datadefense.defenses.datadefense.losses import PerExample

CLIP = 5.0
"""Nats up to which a margin counts, so that a few sure examples do not rule the detector."""


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of Adam that fit psi: how many, how large, and whether Eq. 11 counts in them."""

    count: int
    rate: float
    consistent: bool = True


START, ROUND_RATE = Steps(100, 1e-3), 1e-4
"""The consistent start, and the size of the steps in the rounds.

Adam's first steps have full length in every coordinate, however small the gradient; in the rounds,
where it starts afresh, larger ones shake a good ranking."""


def fit(psi: Psi, owned: DefenseSet, margins: PerExample, steps: Steps) -> Psi:
    r"""Return psi after steps of Adam on :math:`V + L_{pred} + l_{consist}`, each as a mean."""
    h_1, y, known = standardise(owned.features), owned.examples.labels, owned.known_clean
    clean = int(known.sum())
    pairs = clean * (len(owned) - clean)
    weights = [weight.clone().requires_grad_() for weight in psi]
    current = Psi(*weights)
    memory = [(w, torch.zeros_like(w), torch.zeros_like(w), torch.tensor(0.0)) for w in weights]
    for _ in range(steps.count):
        prediction = y_hat_logits(current, h_1)
        scores = min_max(g_2(current, prediction, y))
        cost = V(scores, margins.clamp(-CLIP, CLIP)) / len(owned)
        loss = L_psi(cost, L_pred(prediction, y, known), 1 / max(1, clean))
        if steps.consistent:
            loss = loss + l_consist(scores, known) / max(1, pairs)
        if not loss.requires_grad:
            break
        for weight in weights:
            weight.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        _step_of_adam([row for row in memory if row[0].grad is not None], steps.rate)
    return Psi(*(weight.detach() for weight in weights))


@torch.no_grad()
def _step_of_adam(memory: list[tuple[Tensor, Tensor, Tensor, Tensor]], rate: float) -> None:
    """Take one step from weights, means, mean squares and counts, all changed in place.

    What ``torch.optim.Adam`` does, to the bit, without making one: the first in a process loads
    PyTorch's compiler, which takes a second.
    """
    weights, means, squares, counts = (list(column) for column in zip(*memory, strict=True))
    gradients = [gradient for weight in weights if (gradient := weight.grad) is not None]
    adam(
        weights,
        gradients,
        means,
        squares,
        [],
        counts,
        amsgrad=False,
        beta1=0.9,
        beta2=0.999,
        lr=rate,
        weight_decay=0.0,
        eps=1e-8,
        maximize=False,
    )
