"""Fang's attack on Krum: the longest step against the honest way that Krum still picks."""

import math
from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, Threat
from datadefense.attacks.oracle import mean
from datadefense.attacks.untargeted import Crafted, MaybeGuessing
from datadefense.core.local_training import Trainer
from datadefense.core.settings import check_float, check_int, setting
from datadefense.kernels.distances import gram_matrix
from datadefense.kernels.sums import norms

LEAST = 1e-5
"""Shortest step that is tried, as in the paper."""
BISECTIONS = 10
"""Times that the gap between the step that Krum picks and its double is halved."""


@dataclass(frozen=True, slots=True)
class FangKrum(MaybeGuessing):
    r"""Untargeted: the longest step against the honest way that Krum picks.

    The first attacker sends :math:`-\lambda\,\mathrm{sign}(\mu)`, the others the same with noise of
    length ``epsilon``, so that they vouch for it. :math:`\lambda` is halved from the bound of the
    paper's theorem 1,

    .. math:: \sqrt{\frac{\min_i \sum_{j \in N_i} \lVert h_i - h_j \rVert^2}{(n - 2a - 1)\,d}}
        + \frac{\max_i \lVert h_i \rVert}{\sqrt d}

    (:math:`N_i`: the n - a - 2 nearest honest ones) until Krum picks an attacker; then the gap to
    its double is halved ten times. All rows are combinations of the honest updates, the signs and
    the noise, so every try is told from one Gram matrix of these. Where Krum never picks it down
    to 1e-5, the last step is sent (``picked`` = 0).

    Reference: Fang et al., *Local Model Poisoning Attacks to Byzantine-Robust Federated Learning*,
    USENIX Security 2020, section 4.2.

    Differs: the paper stops at the first half that is picked; n - 2a - 1 is 1 at the least; without
    knowledge the paper adds attackers on trial until one is picked, here all of the round's are in.
    """

    epsilon: float = setting(0.01, "length of the noise that tells attackers apart")
    num_malicious: int | None = setting(
        None, "attackers that Krum assumes; none: as many as attack"
    )

    name: ClassVar[str] = "fang-krum"
    threat: ClassVar[Threat] = Threat("Krum, and what honest clients send; or Krum", scales=True)

    def __post_init__(self) -> None:
        MaybeGuessing.__post_init__(self)
        check_float("epsilon", self.epsilon, minimum=0)
        if self.num_malicious is not None:
            check_int("num_malicious", self.num_malicious, 0)

    def update(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Return noise of length 1, for what is agreed upon."""
        draw = context.generator("noise")
        noise = torch.randn(len(context.start), generator=draw, dtype=context.start.dtype)
        return noise / float(norms(noise[None])[0])

    def craft(
        self, honest: Float[Tensor, "honest dim"], own: Float[Tensor, "attackers dim"]
    ) -> Crafted:
        """Find the step by the Gram matrix, and send it."""
        signs = torch.sign(mean(honest))
        noise = self.epsilon * own
        noise[0] = 0
        gram = gram_matrix(torch.cat([honest, signs[None], noise]), dtype=torch.float64)
        assumed = len(own) if self.num_malicious is None else self.num_malicious
        step, picked = longest_step(gram, len(honest), assumed)
        return noise - step * signs, {"step": step, "picked": float(picked)}


def longest_step(
    gram: Float64[Tensor, "basis basis"], honest: int, assumed: int
) -> tuple[float, bool]:
    """Return the step, and whether Krum picks it; ``gram`` is of honest rows, signs and noise."""
    upper = upper_bound(gram, honest)
    if not (0 < upper < math.inf):
        return 0.0, False
    step = upper
    while not picks(gram, honest, assumed, step):
        if step / 2 < LEAST:
            return step, False
        step /= 2
    gap = step if step < upper else 0.0
    for _ in range(BISECTIONS):
        gap /= 2
        if picks(gram, honest, assumed, step + gap):
            step += gap
    return step, True


def upper_bound(gram: Float64[Tensor, "basis basis"], honest: int) -> float:
    """Return the bound of theorem 1; 0 where the honest updates have no way."""
    among, signs = gram[:honest, :honest], float(gram[honest, honest])
    attackers = len(gram) - honest - 1
    if signs == 0:
        return 0.0
    least = float(scores(squared(among), honest - 2).min()) if honest > 1 else 0.0
    longest = math.sqrt(float(among.diagonal().max()))
    spread = math.sqrt(least / (max(1, honest - attackers - 1) * signs))
    return spread + longest / math.sqrt(signs)


def picks(gram: Float64[Tensor, "basis basis"], honest: int, assumed: int, step: float) -> bool:
    """Say whether Krum picks an attacker, whatever the order of the clients."""
    attackers = len(gram) - honest - 1
    rows = torch.eye(len(gram), dtype=torch.float64)
    rows[honest + 1 :, honest] = -step
    rows = rows[torch.arange(len(gram)) != honest]
    found = scores(squared(rows @ gram @ rows.T), honest + attackers - assumed - 2)
    return bool(found[honest:].min() < found[:honest].min())


def squared(gram: Float64[Tensor, "rows rows"]) -> Float64[Tensor, "rows rows"]:
    """Return squared distances by inner products."""
    squares = gram.diagonal()
    return (squares[:, None] + squares[None, :] - 2 * gram).clamp(min=0)


def scores(distances: Float64[Tensor, "rows rows"], neighbours: int) -> Float64[Tensor, " rows"]:
    """Return Krum's scores: the sum of the squared distances to the nearest, one at least."""
    others = distances.clone().fill_diagonal_(torch.inf)
    count = min(max(1, neighbours), len(distances) - 1)
    return others.sort(dim=1).values[:, :count].sum(1)
