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

from datadefense.attacks.base import Loot, Situation
from datadefense.attacks.pgd import Pgd
from datadefense.attacks.schedule import EXTRA
from datadefense.data.digits import load_digits_edge
from datadefense.data.partition import dirichlet
from datadefense.defended_round import defend
from datadefense.defense_set import DefenseSet
from datadefense.defenses.base import Defense
from datadefense.examples import Examples
from datadefense.gate import Gate
from datadefense.models.features import penultimate
from datadefense.models.lenet import lenet
from datadefense.params import Layout, predictor
from datadefense.rng import derive_seed, generator
from datadefense.round import Round
from datadefense.server import Server
from datadefense.training import Bench, Sgd

HONEST, EXAMPLES, POISON = 9, 80, 66
"""Honest clients, their examples on average, and poisoned examples of the attacker."""
ATTACK = Pgd(epochs=5, learning_rate=0.02, radius=1.0, replacement=True)


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
    order = torch.randperm(len(digits.train), generator=generator(seed, "deal"))
    warm, root, unmarked, spare, hands = (
        digits.train.take(hand) for hand in torch.split(order, [800, 100, 300, 100, 2700])
    )
    strange = torch.randperm(len(digits.edge_case), generator=generator(seed, "poison"))
    half = POISON + (len(strange) - POISON) // 2
    seen = digits.edge_case.take(strange[POISON:half])
    loot = Loot(spare, digits.edge_case.take(strange[:POISON]))
    honest = hands.take(torch.arange(HONEST * EXAMPLES))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "model"))
        module = lenet()
    layout = Layout.of_module(module)
    predict = predictor(module, layout)
    bench = Bench(module, layout)
    bench.train(Sgd(epochs=5), warm, generator(seed, "warm start"))
    start = bench.write_update(torch.zeros(layout.dim), torch.empty(layout.dim))

    training = Sgd(epochs=2)
    parts = dirichlet(honest.labels, HONEST, 0.5, generator(seed, "partition"))
    counts = [*map(len, parts), len(loot.mixed())]
    updates = torch.empty(len(counts), layout.dim)
    for client, part in enumerate(parts):
        bench.load(start)
        bench.train(training, honest.take(part), generator(seed, "client", client))
        bench.write_update(start, updates[client])
    situation = Situation(1, start, None, sum(counts), (0, 1), training, None, seed)
    updates[-1] = ATTACK.update(bench, loot, situation)
    return AttackedRound(
        Round(
            index=1,
            global_params=start,
            updates=updates,
            num_examples=torch.tensor(counts),
            client_ids=(*(f"client-{j}" for j in range(HONEST)), EXTRA),
        ),
        layout,
        Server(predict, root, seed, _defense_set(bench, start, root, unmarked, seen)),
        digits.test,
        digits.edge_case.take(strange[half:]),
    )


def _defense_set(
    bench: Bench, start: Float[Tensor, " dim"], known: Examples, unmarked: Examples, seen: Examples
) -> DefenseSet:
    """Return known clean digits, others, and strange sevens; the encoder is the warm start."""
    bench.load(start)
    examples = known.join(unmarked).join(seen)
    marks = torch.arange(len(examples)) < len(known)
    return DefenseSet(examples, marks, penultimate(bench.module, examples.inputs))


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
