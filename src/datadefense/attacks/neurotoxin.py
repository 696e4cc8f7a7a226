"""Neurotoxin: stay off the coordinates that honest clients use, so that the backdoor lasts."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from datadefense.attacks.base import AttackContext, Threat
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.core.local_training import Trainer
from datadefense.core.settings import check_float, setting
from datadefense.kernels.top import top_mask


@dataclass(frozen=True, slots=True)
class Neurotoxin(OwnTraining):
    r"""Stay off the coordinates that honest clients use, so that the backdoor lasts.

    Zero the gradient where the last global update was greatest.

    .. math:: g_i \leftarrow 0 \text{ for } i \in \mathrm{top}_k(|\bar\phi^{t-1} - \bar\phi^{t-2}|)

    In the first round there is nothing to go by, and the gradient stays as it is.

    Reference: Zhang et al., *Neurotoxin: Durable Backdoors in Federated Learning*, ICML 2022.
    Weight decay still moves masked coordinates, as in their code.
    """

    top_fraction: float = setting(0.05, "share of the coordinates that is left alone")

    name: ClassVar[str] = "neurotoxin"
    threat: ClassVar[Threat] = Threat("the last two global models", trains_longer=True)

    def __post_init__(self) -> None:
        OwnTraining.__post_init__(self)
        check_float("top_fraction", self.top_fraction, above=0, below=1)

    def before_step(self, trainer: Trainer, context: AttackContext) -> Callable[[], None] | None:
        """Return the masking of the gradients."""
        if context.previous is None:
            return None
        count = max(1, int(self.top_fraction * len(context.start)))
        free = ~top_mask(context.start - context.previous, count)
        views = [free[slot.start : slot.stop].view(slot.shape) for slot in trainer.layout.slots]

        def mask() -> None:
            for tensor, view in zip(trainer.tensors, views, strict=True):
                if tensor.grad is not None:
                    tensor.grad.mul_(view)

        return mask
