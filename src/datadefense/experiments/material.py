"""Material: what a setup brings, dealt out so that nobody shares an example with anybody."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor, nn

from datadefense.attacks.base import Loot
from datadefense.data.digits import load_digits_edge
from datadefense.examples import Examples
from datadefense.experiments.experiment import Experiment
from datadefense.models.lenet import lenet
from datadefense.params import Layout
from datadefense.rng import derive_seed, generator
from datadefense.settings import SettingsError
from datadefense.training import Bench, Sgd

DIGITS_WARM, DIGITS_SERVER = 800, 400
"""Of the 4,000 digits to train on: for the warm start, and for the server."""


@dataclass(frozen=True, slots=True, eq=False)
class Material:
    """The data of a run by holder, and the model it starts from.

    Args:
        clients: examples of all honest clients together.
        attacker: what attackers hold.
        server_clean: clean examples of the server.
        server_poison: poisoned examples among which the server may find some.
        test: clean examples to judge by.
        backdoor_test: poisoned examples to judge by.
    """

    module: nn.Module
    layout: Layout
    start: Float[Tensor, " dim"]
    clients: Examples
    attacker: Loot
    server_clean: Examples
    server_poison: Examples
    test: Examples
    backdoor_test: Examples


def digits_edge(experiment: Experiment) -> Material:
    """Deal MNIST digits and strange sevens, and warm up a LeNet on digits that are nobody's."""
    seed = experiment.seed
    digits = load_digits_edge(seed)
    order = torch.randperm(len(digits.train), generator=generator(seed, "deal"))
    sizes = [DIGITS_WARM, DIGITS_SERVER, experiment.attack_clean]
    rest = len(order) - sum(sizes)
    if rest < experiment.clients:
        raise SettingsError(f"{experiment.clients} clients share {rest} digits: too few")
    warm, server, attacker, clients = torch.split(order, [*sizes, rest])
    strange = torch.randperm(len(digits.edge_case), generator=generator(seed, "poison"))
    poison = experiment.attack_poison
    if poison > len(strange) - 100:
        raise SettingsError(f"attack_poison must be <= {len(strange) - 100}, got {poison}")
    defense = poison + (len(strange) - poison) // 2
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "model"))
        module = lenet()
    layout = Layout.of_module(module)
    return Material(
        module=module,
        layout=layout,
        start=warm_up(module, layout, digits.train.take(warm), digits.test, experiment),
        clients=digits.train.take(clients),
        attacker=Loot(digits.train.take(attacker), digits.edge_case.take(strange[:poison])),
        server_clean=digits.train.take(server),
        server_poison=digits.edge_case.take(strange[poison:defense]),
        test=digits.test,
        backdoor_test=digits.edge_case.take(strange[defense:]),
    )


def warm_up(
    module: nn.Module, layout: Layout, examples: Examples, test: Examples, experiment: Experiment
) -> Float[Tensor, " dim"]:
    """Train epoch by epoch until the accuracy of the warm start is reached; 50 epochs at most."""
    bench = Bench(module, layout)
    wanted = experiment.warm_accuracy_percent * len(test) / 100
    for epoch in range(50):
        bench.train(Sgd(1, 32, 0.01), examples, generator(experiment.seed, "warm", epoch))
        if bench.count_correct(test) >= wanted:
            break
    start = torch.zeros(layout.dim, dtype=layout.dtype)
    bench.write_update(start.clone(), start)
    return start
