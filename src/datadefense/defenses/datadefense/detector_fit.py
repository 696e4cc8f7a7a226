"""Fitting the detector: steps of Adam on its loss, at the start and in the rounds."""

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


@dataclass(frozen=True, slots=True)
class Steps:
    """Steps of Adam that fit psi, and the loss that they go down.

    Args:
        count: how many steps.
        rate: Adam's step size.
        lam: weight of L_pred (a mean over D_clean).
        consistency: weight of l_consist (a mean over pairs); 0: Eq. 11 does not count.
        margin_clip: nats up to which a margin counts.
    """

    count: int
    rate: float
    lam: float
    consistency: float
    margin_clip: float


def fit(psi: Psi, owned: DefenseSet, margins: PerExample, steps: Steps) -> Psi:
    r"""Return psi after steps of Adam on a weighted sum of means.

    .. math:: V / n + \lambda L_{pred} / |C| + c\, l_{consist} / (|C| |U|)

    with C the known clean examples, U the others, and c = ``steps.consistency``.
    """
    h_1, y, known = standardise(owned.features), owned.examples.labels, owned.known_clean
    clean = int(known.sum())
    pairs = clean * (len(owned) - clean)
    weights = [weight.clone().requires_grad_() for weight in psi]
    current = Psi(*weights)
    memory = [(w, torch.zeros_like(w), torch.zeros_like(w), torch.tensor(0.0)) for w in weights]
    for _ in range(steps.count):
        prediction = y_hat_logits(current, h_1)
        scores = min_max(g_2(current, prediction, y))
        v = V(scores, margins.clamp(-steps.margin_clip, steps.margin_clip)) / len(owned)
        loss = L_psi(v, L_pred(prediction, y, known), steps.lam / max(1, clean))
        if steps.consistency > 0:
            loss = loss + steps.consistency * l_consist(scores, known) / max(1, pairs)
        if not loss.requires_grad:
            break
        for weight in weights:
            weight.grad = None
        loss.backward()  # type: ignore[no-untyped-call]
        _step_of_adam([row for row in memory if row[0].grad is not None], steps.rate)
    return Psi(*(weight.detach() for weight in weights))


@torch.no_grad()
def _step_of_adam(memory: list[tuple[Tensor, Tensor, Tensor, Tensor]], rate: float) -> None:
    """Take one step; weights, means, mean squares and counts are changed in place.

    Same bits as ``torch.optim.Adam``, without creating one: the first in a process loads
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
