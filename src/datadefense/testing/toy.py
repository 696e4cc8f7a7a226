"""A server and rounds small enough for a test, real enough for a defense that wants data."""

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense_set import DefenseSet
from datadefense.core.examples import Examples
from datadefense.core.layout import Layout
from datadefense.core.rng import generator
from datadefense.core.round import Round
from datadefense.core.server import Server

FEATURES, CLASSES = 200, 3
TOY_DIM = CLASSES * FEATURES + CLASSES
"""Parameters of the toy model: a linear classifier."""


def toy_layout() -> Layout:
    """Return the layout of the toy model: a weight and a bias."""
    weight, bias = torch.zeros(CLASSES, FEATURES), torch.zeros(CLASSES)
    return Layout.of_state_dict({"weight": weight, "bias": bias})


def toy_predict(params: Float[Tensor, " dim"], inputs: Tensor) -> Tensor:
    """Return the logits of a linear classifier."""
    weight = params[: CLASSES * FEATURES].view(CLASSES, FEATURES)
    return inputs @ weight.T + params[CLASSES * FEATURES :]


def toy_server(seed: int = 0) -> Server:
    """Return a server with a linear model and 40 clean examples that it can learn.

    Its defense set has 50: these, the first 15 known to be clean, and 10 with a wrong label.
    """
    draw = generator(seed, "toy server")
    inputs = torch.randn(40, FEATURES, generator=draw) / FEATURES**0.5
    truth = torch.randn(FEATURES, CLASSES, generator=draw)
    clean = Examples(inputs, (inputs @ truth).argmax(1))
    strange = torch.randn(10, FEATURES, generator=draw) / FEATURES**0.5
    wrong = Examples(strange, ((strange @ truth).argmax(1) + 1) % CLASSES)
    examples = clean.join(wrong)
    defense_set = DefenseSet(examples, torch.arange(50) < 15, examples.inputs)
    return Server(toy_predict, clean, seed, defense_set)


def toy_round(num_clients: int = 11, seed: int = 0, scale: float = 0.01) -> Round:
    """Return a round of Gaussian updates of norm about 25 x ``scale`` with unequal counts."""
    draw = generator(seed, "toy round")
    return Round(
        index=1,
        global_params=torch.randn(TOY_DIM, generator=draw),
        updates=scale * torch.randn(num_clients, TOY_DIM, generator=draw),
        num_examples=torch.randint(10, 100, (num_clients,), generator=draw),
        client_ids=tuple(range(100, 100 + num_clients)),
        layout=toy_layout(),
    )
