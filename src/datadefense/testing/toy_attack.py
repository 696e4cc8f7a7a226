"""A malicious client of a toy federation: what it holds, what it knows, and what it trains with."""

from dataclasses import dataclass, field
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from datadefense.attacks.base import (
    Attack,
    AttackContext,
    AttackerData,
    Sees,
    counted,
    imitation,
    seed_module,
)
from datadefense.attacks.collusion import Plot, View
from datadefense.core.defense_set import DefenseSet
from datadefense.core.examples import Examples
from datadefense.core.local_training import Sgd, Trainer
from datadefense.core.predictor import Layout, predictor
from datadefense.core.rng import derive_seed, generator
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Predict, Server

FEATURES, CLASSES, TARGET = 6, 3, 0
CLIENTS, ATTACKERS, USUAL = 6, 2, 20
"""Clients of a round, malicious ones among them, and examples of an honest client."""
PARTS = 4


def toy_module() -> nn.Module:
    """Return a small model with everything that makes a training depend on what came before it.

    Dropout draws random numbers, and BatchNorm has running statistics.
    """
    return nn.Sequential(
        nn.Linear(FEATURES, 8),
        nn.BatchNorm1d(8),
        nn.ReLU(),
        nn.Dropout(0.2),
        nn.Linear(8, CLASSES),
    )


def toy_clean(count: int, seed: int) -> Examples:
    """Return examples of Gaussian clouds, one a class."""
    draw = generator(seed, "toy clouds")
    labels = torch.randint(CLASSES, (count,), generator=draw)
    middles = 2.0 * nn.functional.one_hot(labels, FEATURES)
    return Examples(torch.randn(count, FEATURES, generator=draw) + middles, labels)


def toy_poison(count: int, seed: int, last: float = 6.0) -> Examples:
    """Return examples of other classes with an odd last value, called the target."""
    clean = toy_clean(4 * count, seed)
    inputs = clean.inputs[clean.labels != TARGET][:count].clone()
    inputs[:, -1] = last
    return Examples(inputs, torch.full((len(inputs),), TARGET))


def toy_attacker_data() -> AttackerData:
    """Return what attackers hold, the poison in parts included."""
    parts = tuple(toy_poison(10, 50 + part, last=2.0 * part) for part in range(1, PARTS + 1))
    return AttackerData(toy_clean(40, 1), toy_poison(30, 2), parts)


@dataclass(frozen=True, slots=True, eq=False)
class ToyAttacker:
    """The attackers of a round of a toy federation.

    Args:
        attack: what they do.
        index: number of the round.
        seed: root of their randomness.
        state: what they remember.
        previous: whether there was a round before.
    """

    attack: Attack
    index: int = 2
    seed: int = 0
    state: Any = None
    layout: Layout = field(default_factory=lambda: Layout.of_module(toy_module()))
    data: AttackerData = field(init=False)
    start: Float[Tensor, " dim"] = field(init=False)
    previous: Float[Tensor, " dim"] = field(init=False)

    def __post_init__(self) -> None:
        held = self.attack.holdings(toy_attacker_data(), USUAL)
        object.__setattr__(self, "data", held)
        models = [_model(self.layout, number) for number in (self.index, self.index - 1)]
        object.__setattr__(self, "start", models[0])
        object.__setattr__(self, "previous", models[1])

    def context(self, attacker: int = 0) -> AttackContext:
        """Return what an attacker knows."""
        return AttackContext(
            index=self.index,
            start=self.start,
            previous=self.previous if self.index > 1 else None,
            num_examples=CLIENTS * USUAL,
            attacker=(attacker, ATTACKERS),
            training=Sgd(2, 8, 0.05, decay=0.99).in_round(self.index),
            augment=None,
            seed=self.seed,
            first=_model(self.layout, 1),
            clients=CLIENTS,
            rate_factor=0.99 ** (self.index - 1),
            state=self.state,
        )

    def trainer(self) -> Trainer:
        """Return a fresh trainer."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            return Trainer(toy_module(), self.layout)

    def update(self, attacker: int = 0, trainer: Trainer | None = None) -> Any:
        """Return what the attack makes of it."""
        with torch.random.fork_rng(devices=[]):
            return self.attack.update(trainer or self.trainer(), self.data, self.context(attacker))

    def sent(self) -> tuple[Tensor, Plot | None]:
        """Return what all attackers of the round send, and what they agreed on."""
        rows = torch.stack([self.update(attacker) for attacker in range(ATTACKERS)])
        with torch.random.fork_rng(devices=[]):
            plot = self.attack.agree(self.view(rows))
        return (rows if plot is None else plot.updates), plot

    def view(self, rows: Float[Tensor, "attackers dim"]) -> View:
        """Return what attackers see who declare what this attack declares."""
        sees, trainer = self.attack.sees(), self.trainer()
        honest = [self._honest(trainer, number) for number in range(CLIENTS - ATTACKERS)]
        updates = torch.cat([torch.stack(honest), rows])
        attacks = torch.arange(CLIENTS) >= CLIENTS - ATTACKERS
        if Sees.HONEST_UPDATES not in sees:
            updates = updates.masked_fill(~attacks[:, None], torch.nan)
        wanted = self.attack.honest_trainings(CLIENTS - ATTACKERS)
        stand_ins = [self._honest(trainer, 100 + number) for number in range(wanted)]
        claimed = counted(self.attack.claim(self.data))
        predict = predictor(trainer.module, self.layout)
        held = self.data.mixed()
        server = _server(predict, toy_clean(30, 7), toy_poison(10, 8))
        counts = torch.where(attacks, torch.tensor(claimed), torch.tensor(USUAL))

        def guess() -> Server:
            return _server(predict, *(self.data.guess or (self.data.clean, self.data.poison)))

        def own_loss(params: Float[Tensor, " dim"]) -> float:
            with torch.no_grad():
                return float(cross_entropy(predict(params, held.inputs), held.labels))

        return View(
            round=Round(self.index, self.start, updates, counts, tuple(range(CLIENTS))),
            attacks=attacks,
            stand_ins=torch.stack(stand_ins) if wanted else updates.new_zeros(0, self.layout.dim),
            first=_model(self.layout, 1),
            rule=FedAvgLike() if Sees.RULE in sees else None,
            state=None,
            server=server if Sees.SERVER in sees else None,
            guess=guess,
            own_loss=own_loss,
        )

    def _honest(self, trainer: Trainer, number: int) -> Float[Tensor, " dim"]:
        with torch.random.fork_rng(devices=[]):
            seed_module(self.context(), "imitation", number)
            return imitation(trainer, toy_attacker_data(), self.context(), number)


class FedAvgLike:
    """The rule of the toy federation: the mean, with weights."""

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> None:
        """Return nothing to remember."""

    def aggregate(self, state: None, round: Round, server: Server) -> Aggregate[None]:
        """Return the mean of the updates, added to the model."""
        weights = round.shares()
        return Aggregate(round.global_params + weights @ round.updates, None, weights)


def _server(predict: Predict, clean: Examples, poison: Examples) -> Server:
    examples = clean.join(poison)
    known = torch.arange(len(examples)) < len(clean) // 2
    defense_set = DefenseSet(examples, known, examples.inputs)
    return Server(predict, examples.take(known.nonzero().flatten()), 0, defense_set)


def _model(layout: Layout, number: int) -> Float[Tensor, " dim"]:
    """Return the global model before round ``number``: near to that of the round before."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(0, "toy model"))
        first = layout.flatten(toy_module().state_dict())
    draw = generator(number, "toy model")
    trained = torch.tensor([not slot.is_variance for slot in layout.slots])
    widths = torch.tensor([slot.stop - slot.start for slot in layout.slots])
    moved = 0.02 * number * torch.randn(layout.dim, generator=draw)
    return first + moved * trained.repeat_interleave(widths)
