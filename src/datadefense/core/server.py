"""Server: the only way for a defense to reach a model, data and random numbers.

A defense object holds numbers only, so it is its own record and cache key; what it may look at
while it works is handed to it here.
"""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense_set import DefenseSet
from datadefense.core.errors import InputError
from datadefense.core.examples import Examples
from datadefense.core.needs import Need, offered
from datadefense.core.rng import generator

Predict = Callable[[Tensor, Tensor], Tensor]
"""``predict(params [dim], inputs [examples, ...]) -> logits [examples, classes]``,
differentiable in ``params``. `datadefense.core.predictor.predictor` makes one from a module."""


@dataclass(frozen=True, slots=True, eq=False)
class Server:
    """What the server owns.

    Args:
        predict: the model as a function of its parameter vector.
        clean: examples that the server knows to be clean.
        seed: root of all randomness of the defense.
        defense_set: examples of which some are poisoned and a few known to be clean.
        threads: for what is measured of each client by itself; None: as many as torch has. The bits
            do not depend on it.
    """

    predict: Predict | None = None
    clean: Examples | None = None
    seed: int = 0
    defense_set: DefenseSet | None = None
    threads: int | None = None

    def offers(self) -> Need:
        """Return what a defense finds here; whether clients keep their ids is not its to say."""
        return offered(self.predict, self.clean, self.defense_set)

    def generator(self, *name: str | int) -> torch.Generator:
        """Return the generator called ``name``: same name, same numbers, in any order."""
        return generator(self.seed, "server", *name)

    def logits(self, params: Float[Tensor, " dim"], inputs: Tensor) -> Tensor:
        """Return the model's logits, or raise if this server has no model."""
        if self.predict is None:
            raise InputError("this defense needs a model on the server: Server(predict=...)")
        return self.predict(params, inputs)
