"""Clean loss and poison loss of labelled logits, in log space (Eq. 4 and 5)."""

import torch
from jaxtyping import Float, Int64
from torch import Tensor
from torch.nn.functional import cross_entropy

Logits = Float[Tensor, "examples classes"]
Labels = Int64[Tensor, " examples"]
PerExample = Float[Tensor, " examples"]


def l_c(z: Logits, y: Labels) -> PerExample:
    r"""Clean loss, Eq. 4: :math:`-\log f(y | x) = \mathrm{LSE}(z) - z_y`, without cancellation."""
    return cross_entropy(z, y, reduction="none")


def l_p(z: Logits, y: Labels) -> PerExample:
    r"""Poison loss, Eq. 5: :math:`-\log(1 - f(y | x)) = \mathrm{LSE}(z) - \mathrm{LSE}(z_{\ne y})`.

    In float32 the plain formula is infinite from a logit gap of 17 on; this one never is.
    """
    return z.logsumexp(1) - _of_others(z, y)


def margin(z: Logits, y: Labels) -> PerExample:
    r"""The difference that weighs gamma in Eq. 9: :math:`l_p - l_c`, the log-odds of the label."""
    return _of_label(z, y) - _of_others(z, y)


def _of_label(z: Logits, y: Labels) -> PerExample:
    return z.gather(1, y[:, None]).squeeze(1)


def _of_others(z: Logits, y: Labels) -> PerExample:
    """Return LSE over all classes but the label's."""
    hidden = torch.zeros_like(z, dtype=torch.bool).scatter_(1, y[:, None], True)
    return z.masked_fill(hidden, -torch.inf).logsumexp(1)
