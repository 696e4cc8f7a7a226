"""A federation: everything that does not change from round to round."""

import copy
from dataclasses import dataclass
from typing import Any

from jaxtyping import Float
from torch import Tensor, nn

from datadefense.attacks.base import Attack, AttackerData
from datadefense.core.compute import Compute
from datadefense.core.examples import Examples
from datadefense.core.local_training import Augment, Sgd, Trainer
from datadefense.core.predictor import Layout
from datadefense.core.settings import SettingsError
from datadefense.data.text import Vocabulary
from datadefense.schedules.base import Participant, Schedule, participants
from datadefense.simulation.shards import Shards


@dataclass(frozen=True, slots=True, eq=False)
class Federation:
    """Clients with their data, how they train, who attacks, and what the outcome is judged by.

    Args:
        module: the architecture; its values do not matter.
        start: parameters before the first round.
        train: examples of all clients; ``shards`` says whose is which.
        test: examples for the clean accuracy.
        backdoor_test: poisoned examples, with the attacker's label, that nobody trains on.
        training: how honest clients train.
        augment: what they do to their inputs.
        attack, attacker_data: how attackers work and what they hold; None without any.
        schedule: who takes part in which round.
        clients_per_round: slots in a round.
        seed: root of all randomness.
        vocabulary: what tokens stand for, for people; None where inputs are no texts.
        compute: how the model's passes are computed where clients train; None: as usual.
    """

    module: nn.Module
    layout: Layout
    start: Float[Tensor, " dim"]
    train: Examples
    shards: Shards
    test: Examples
    backdoor_test: Examples
    training: Sgd
    schedule: Schedule
    clients_per_round: int
    attack: Attack | None = None
    attacker_data: AttackerData | None = None
    augment: Augment | None = None
    seed: int = 0
    vocabulary: Vocabulary | None = None
    compute: Compute | None = None

    def trainer(self, device: str = "cpu") -> Trainer:
        """Return a place to train any client of this federation, with a module of its own."""
        return Trainer(copy.deepcopy(self.module), self.layout, device, self.compute)

    def __post_init__(self) -> None:
        self.schedule.check(len(self.shards), self.clients_per_round)
        if (self.attack is None) != (self.attacker_data is None):
            raise SettingsError("attack and attacker_data must be given together")

    def participants(self, index: int) -> tuple[Participant, ...]:
        """Return who takes part in a round; without an attack nobody attacks."""
        people = participants(
            self.schedule, index, len(self.shards), self.clients_per_round, self.seed
        )
        if self.attack is None and any(person.is_malicious for person in people):
            raise SettingsError("the schedule names attackers, but there is no attack")
        return people

    def stand_ins(self, attackers: int) -> int:
        """Return how many honest trainings of their own the attackers of a round want to see."""
        if self.attack is None or attackers == 0:
            return 0
        return self.attack.honest_trainings(self.clients_per_round - attackers)

    def claim(self, person: Participant) -> Any:
        """Return how many examples a participant claims: an attacker may say anything at all."""
        if person.is_malicious and self.attack is not None and self.attacker_data is not None:
            return self.attack.claim(self.attacker_data)
        return self.shards.size(int(person.client_id))
