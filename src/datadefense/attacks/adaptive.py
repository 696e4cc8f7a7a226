"""An attacker who knows the defense: it trains to look honest on a guess of the defense set."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from datadefense.attacks.base import Loot, Situation, Twist
from datadefense.settings import SettingsError, number, setting
from datadefense.training import Bench, Loss, plain_loss


@dataclass(frozen=True, slots=True)
class KnowsTheDefense(Twist):
    r"""Keep the losses on a guess of the server's data no worse than those of the global model.

    .. math::
        L = L_{class} + w \big( [L_c(\phi) - L_c(\bar\phi)]_+ + [L_p(\bar\phi) - L_p(\phi)]_+ \big)

    with the cross-entropy :math:`L_c` of the guessed clean and :math:`L_p` of the guessed poisoned
    examples (under the attacker's label: a model that learned the backdoor has a small one). The
    guess is the attacker's own data of the same kind; it does not see the server's. Knowing the
    rule is this attack's threat model, and no other attack's.
    """

    weight: float = setting(1.0, "weight w of looking honest")

    def __post_init__(self) -> None:
        number("weight", self.weight, minimum=0)

    def loss(self, bench: Bench, loot: Loot, situation: Situation) -> Loss:
        """Return the loss with the price of being noticed."""
        if loot.guess is None:
            raise SettingsError("the adaptive attack needs a guess of the defense set")
        clean, poison = loot.guess
        bench.module.eval()
        with torch.no_grad():
            least_clean = cross_entropy(bench.module(clean.inputs), clean.labels)
            least_poison = cross_entropy(bench.module(poison.inputs), poison.labels)

        def honest_looking(module: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
            clean_loss = cross_entropy(module(clean.inputs), clean.labels)
            poison_loss = cross_entropy(module(poison.inputs), poison.labels)
            faults = (clean_loss - least_clean).relu() + (least_poison - poison_loss).relu()
            return plain_loss(module, inputs, labels) + self.weight * faults

        return honest_looking
