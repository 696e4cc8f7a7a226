"""One attacked round on real digits, and what each defense makes of it.

Nine honest clients and an attacker start from the same model. The attacker trains on clean digits
and on edge-case sevens called 1, keeps within a ball around the global model and scales its update
so that the plain average becomes its model (PGD with model replacement). Who trains on what is
disjoint: warm start, clients, attacker, the server's clean examples, test.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.data.digits import load_digits_edge
from datadefense.defended_round import defend
from datadefense.defenses.base import Defense
from datadefense.examples import Examples
from datadefense.gate import Gate
from datadefense.models.lenet import lenet
from datadefense.params import Layout, predictor
from datadefense.rng import derive_seed, generator
from datadefense.round import Round
from datadefense.server import Predict, Server
from datadefense.training import Sgd

HONEST, EXAMPLES = 9, 80
ATTACKER = "attacker"
RADIUS = 1.0
"""Radius of the attacker's ball before scaling."""


@dataclass(frozen=True, slots=True, eq=False)
class AttackedRound:
    """A round with one attacker in it, and the data to judge the outcome by."""

    round: Round
    layout: Layout
    server: Server
    test: Examples
    backdoor_test: Examples

    def score(self, params: Float[Tensor, " dim"]) -> tuple[float, float]:
        """Return main accuracy and attack success rate of a model, in percent."""
        return self._percent(params, self.test), self._percent(params, self.backdoor_test)

    def _percent(self, params: Float[Tensor, " dim"], examples: Examples) -> float:
        with torch.no_grad():
            guesses = self.server.logits(params, examples.inputs).argmax(1)
        return 100 * int((guesses == examples.labels).sum()) / len(examples)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a defense made of the round."""

    defense: str
    ma_percent: float
    asr_percent: float
    attacker_weight: float | None
    fallback: str | None = None


def attacked_round(seed: int = 0) -> AttackedRound:
    """Train a warm start, nine honest clients and one attacker; a few seconds of work."""
    digits = load_digits_edge(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "model"))
        module = lenet()
    layout = Layout.of_module(module)
    predict = predictor(module, layout)
    order = torch.randperm(len(digits.train), generator=generator(seed, "deal"))
    warm, root, spare, shards = torch.split(order, [800, 100, 100, len(order) - 1000])
    start = Sgd(epochs=5, learning_rate=0.01).train(
        predict,
        layout.flatten(dict(module.named_parameters())),
        digits.train.take(warm),
        generator(seed, "warm start"),
    )
    rows: list[Tensor] = []
    training = Sgd(epochs=2, learning_rate=0.01)
    for client, own in enumerate(_deal(digits.train.labels[shards], seed)):
        draw = generator(seed, "client", client)
        trained = training.train(predict, start, digits.train.take(shards[own]), draw)
        rows.append(trained - start)
    poison = torch.randperm(len(digits.edge_case), generator=generator(seed, "poison"))
    clean, poisoned = digits.train.take(spare), digits.edge_case.take(poison[:66])
    attacker_data = Examples(
        torch.cat([clean.inputs, poisoned.inputs]), torch.cat([clean.labels, poisoned.labels])
    )
    counts = [EXAMPLES] * HONEST + [len(attacker_data)]
    boost = sum(counts) / len(attacker_data)
    rows.append(boost * _attack(predict, start, attacker_data, seed))
    return AttackedRound(
        Round(
            index=1,
            global_params=start,
            updates=torch.stack(rows),
            num_examples=torch.tensor(counts),
            client_ids=(*(f"client-{j}" for j in range(HONEST)), ATTACKER),
        ),
        layout,
        Server(predict, digits.train.take(root), seed),
        digits.test,
        digits.edge_case.take(poison[66:]),
    )


def try_defenses(attacked: AttackedRound, defenses: Iterable[Defense[Any]]) -> Iterator[Outcome]:
    """Pass the round through the gate and each defense, and score the new model."""
    start = attacked.round.global_params
    admission = Gate(attacked.layout).screen(attacked.round)
    for defense in defenses:
        state = defense.init(attacked.server, start)
        result = defend(defense, state, admission, start, attacked.server)
        accuracy, success = attacked.score(result.params)
        weight = None if result.weights is None else float(result.weights[-1])
        yield Outcome(defense.name, accuracy, success, weight, result.report.get("fallback"))


def _deal(labels: Tensor, seed: int) -> list[Tensor]:
    """Deal each client EXAMPLES of its own, its classes mixed by a Dirichlet(0.5) draw."""
    draw = generator(seed, "partition")
    left = torch.ones(len(labels))
    hands: list[Tensor] = []
    for _ in range(HONEST):
        mix = torch._sample_dirichlet(torch.full((10,), 0.5), generator=draw)
        hand = torch.multinomial((mix[labels] + 1e-6) * left, EXAMPLES, generator=draw)
        left[hand] = 0
        hands.append(hand)
    return hands


def _attack(predict: Predict, start: Tensor, examples: Examples, seed: int) -> Tensor:
    """Return the attacker's update before scaling: trained an epoch at a time, projected after."""
    params = start
    training = Sgd(epochs=1, learning_rate=0.02)
    for epoch in range(5):
        params = training.train(predict, params, examples, generator(seed, "attacker", epoch))
        update = params - start
        params = start + update * min(1.0, RADIUS / float(update.norm()))
    return params - start
