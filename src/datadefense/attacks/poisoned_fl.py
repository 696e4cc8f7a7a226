"""PoisonedFL: push every coordinate the same way in all rounds, knowing nothing but the models."""

import math
from dataclasses import dataclass, replace
from statistics import NormalDist
from typing import Any, ClassVar

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import Attack, AttackContext, AttackerData, Threat
from datadefense.attacks.untargeted import sendable
from datadefense.core.local_training import Trainer
from datadefense.core.rng import generator
from datadefense.core.settings import check_float, check_int, setting
from datadefense.kernels.sums import norms


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What fake clients remember.

    Args:
        factor: how much longer than the last global update they send.
        since: round in which the present period began; 0: none has.
        anchor: the global model of that round.
        last: what they sent last; None before.
    """

    factor: float
    since: int
    anchor: Float[Tensor, " dim"]
    last: Float[Tensor, " dim"] | None = None


@dataclass(frozen=True, slots=True)
class PoisonedFl(Attack):
    r"""Untargeted: push each coordinate the same way in all rounds; knows the models only.

    Once, a sign :math:`k_i` is drawn for each coordinate. With the last change
    :math:`\delta = \bar\phi^{t-1} - \bar\phi^{t-2}` of the global model and the attackers' last
    update :math:`u'`, all send

    .. math:: u = c \lVert\delta\rVert\; k \circ \frac{v}{\lVert v \rVert}, \qquad
        v = \Bigl| \delta - \frac{\lVert\delta\rVert}{\lVert u' \rVert} u' \Bigr|

    so that they push most where others moved the model. Every ``period`` rounds they look whether
    they get through: if no more coordinates of the model went the way of k than chance explains
    (``confidence`` quantile of the binomial with 1/2), then :math:`c \leftarrow 0.7\,c` while c
    stays above ``least``. In the first round there is no change to go by, and they send zeros;
    before they have sent anything, :math:`v = |\delta|`.

    Reference: Xie, Fang, Gong, *Model Poisoning Attacks to Federated Learning via Multi-Round
    Consistency*, CVPR 2025.

    Differs: the quantile is that of the normal approximation for any size of model; the authors'
    code has numbers for four sizes. A period counts from the first attacked round after the last.
    """

    factor: float = setting(8.0, "c at first: what the last change's length is multiplied by")
    shrink: float = setting(0.7, "what c is multiplied by where nothing gets through")
    least: float = setting(0.5, "least c")
    period: int = setting(50, "rounds from one look to the next")
    confidence: float = setting(0.99, "of the test whether they get through")

    name: ClassVar[str] = "poisoned-fl"
    threat: ClassVar[Threat] = Threat("the last global models", scales=True)

    def __post_init__(self) -> None:
        check_float("factor", self.factor, above=0)
        check_float("shrink", self.shrink, above=0, maximum=1)
        check_float("least", self.least, minimum=0)
        check_int("period", self.period, 1)
        check_float("confidence", self.confidence, minimum=0.5, below=1)

    def num_examples(self, data: AttackerData) -> int:
        """Claim the clean examples only."""
        return max(1, len(data.clean))

    def init(self, start: Float[Tensor, " dim"]) -> Memory:
        """Return the memory before the first round."""
        return Memory(self.factor, 0, torch.zeros_like(start))

    def update(
        self, trainer: Trainer, data: AttackerData, context: AttackContext
    ) -> Float[Tensor, " dim"]:
        """Return the push of this round, the same for all attackers."""
        if context.previous is None:
            return torch.zeros_like(context.start)
        change = context.start - context.previous
        memory = self._looked(context.state, context)
        length = float(norms(change[None])[0])
        size = magnitudes(change, memory.last)
        return sendable(memory.factor * length * signs(context) * size)

    def remember(
        self, state: Any, sent: Float[Tensor, "attackers dim"], context: AttackContext
    ) -> Memory:
        """Keep what was sent, and begin a period where one is over."""
        memory = self._looked(state, context)
        if memory.since == 0 or context.index - memory.since >= self.period:
            memory = replace(memory, since=context.index, anchor=context.start.clone())
        return replace(memory, last=sent[0].clone())

    def _looked(self, memory: Memory, context: AttackContext) -> Memory:
        """Return the memory; with a smaller factor after a period in which nothing got through."""
        if memory.since == 0 or context.index - memory.since < self.period:
            return memory
        moved = (context.start - memory.anchor) * signs(context)
        through = int((moved > 0).sum()) > chance(len(moved), self.confidence)
        smaller = self.shrink * memory.factor
        return memory if through or smaller < self.least else replace(memory, factor=smaller)


def signs(context: AttackContext) -> Float[Tensor, " dim"]:
    """Return k: drawn once for all rounds and attackers, by the seed."""
    draw = generator(context.seed, "attack", "signs")
    ones = torch.randint(2, (len(context.start),), generator=draw)
    return (2 * ones - 1).to(context.start.dtype)


def chance(count: int, confidence: float) -> float:
    """Return how many of so many fair coins show heads at the most, with this confidence.

    >>> round(chance(10_000, 0.99))
    5116
    """
    return count / 2 + NormalDist().inv_cdf(confidence) * math.sqrt(count) / 2


def magnitudes(
    change: Float[Tensor, " dim"], last: Float[Tensor, " dim"] | None
) -> Float[Tensor, " dim"]:
    """Return v, with a length of 1: how much others moved each coordinate; zeros if none did."""
    length = float(norms(change[None])[0])
    others = change
    if last is not None and 0 < (sent := float(norms(last[None])[0])) < math.inf:
        others = change - last * (length / sent)
    size = others.abs()
    whole = float(norms(size[None])[0])
    return size / whole if 0 < whole < math.inf else torch.zeros_like(size)
