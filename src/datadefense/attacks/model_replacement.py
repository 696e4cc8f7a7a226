"""Model replacement: scale the update so that the plain average becomes the attacker's model."""

from dataclasses import dataclass

from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, AttackerData, counted
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.core.local_training import Trainer


@dataclass(frozen=True, slots=True)
class ModelReplacement(OwnTraining):
    """Train with passes and a step size of its own, and scale what was trained.

    The update is multiplied by n / n_a, the examples of the round over the attacker's.

    Reference: Bagdasaryan et al., *How To Backdoor Federated Learning*, AISTATS 2020.
    """

    def finish(
        self,
        update: Float[Tensor, " dim"],
        trainer: Trainer,
        data: AttackerData,
        context: AttackContext,
    ) -> Float[Tensor, " dim"]:
        """Return the scaled update; an attacker whose claim is no count does not scale."""
        own = counted(self.claim(data))
        return update * (context.num_examples / own) if own else update
