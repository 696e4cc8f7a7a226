"""The detector's loss: V, L_pred and consistency with D_clean (Eq. 9 to 11)."""

from jaxtyping import Bool
from torch import Tensor
from torch.nn.functional import cross_entropy

from datadefense.defenses.datadefense.losses import Labels, Logits, PerExample

Marks = Bool[Tensor, " examples"]


def V(gamma: PerExample, margins: PerExample) -> Tensor:
    r"""Loss of a ranking, Eq. 9: :math:`\sum_i \gamma_i (l_p - l_c)_i`."""
    return (gamma * margins).sum()


def L_pred(y_hat: Logits, y: Labels, known_clean: Marks) -> Tensor:
    r"""Cross-entropy of the simulated prediction, summed over D_clean; 0 if there is none.

    Takes logits. The released code applies the softmax twice here.
    """
    return cross_entropy(y_hat[known_clean], y[known_clean], reduction="sum")


def L_psi(v: Tensor, prediction: Tensor, lam: float) -> Tensor:
    r"""Loss that psi minimises, Eq. 10: :math:`V + \lambda L_{pred}`."""
    return v + lam * prediction


def l_consist(gamma: PerExample, known_clean: Marks) -> Tensor:
    r"""Consistency with D_clean, Eq. 11: the sum over all pairs of :math:`\gamma_c - \gamma_u`.

    Summed as :math:`|U| \sum_c \gamma_c - |C| \sum_u \gamma_u`: each example once, not each pair.
    """
    clean, unknown = gamma[known_clean], gamma[~known_clean]
    return len(unknown) * clean.sum() - len(clean) * unknown.sum()
