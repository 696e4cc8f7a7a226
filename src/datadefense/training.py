"""Local training of a parameter vector by stochastic gradient descent."""

from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn.functional import cross_entropy

from datadefense.examples import Examples
from datadefense.server import Predict
from datadefense.settings import number, setting, whole


@dataclass(frozen=True, slots=True)
class Sgd:
    """SGD with momentum on the mean cross-entropy of shuffled mini-batches."""

    epochs: int = setting(1, "passes over the examples")
    batch_size: int = setting(32, "examples a step")
    learning_rate: float = setting(0.01, "step size")
    momentum: float = setting(0.9, "share of the last step that is kept")

    def __post_init__(self) -> None:
        whole("epochs", self.epochs, 1)
        whole("batch_size", self.batch_size, 1)
        number("learning_rate", self.learning_rate, above=0)
        number("momentum", self.momentum, minimum=0, below=1)

    def train(
        self,
        predict: Predict,
        params: Float[Tensor, " dim"],
        examples: Examples,
        generator: torch.Generator,
    ) -> Float[Tensor, " dim"]:
        """Return the parameters after training from ``params``, which stay as they are."""
        current = params.detach().clone()
        velocity = torch.zeros_like(current)
        for _ in range(self.epochs):
            order = torch.randperm(len(examples), generator=generator)
            for index in torch.split(order, self.batch_size):
                batch = examples.take(index)
                point = current.detach().requires_grad_()
                loss = cross_entropy(predict(point, batch.inputs), batch.labels)
                (gradient,) = torch.autograd.grad(loss, point)
                velocity.mul_(self.momentum).add_(gradient)
                current = current.detach().sub_(velocity, alpha=self.learning_rate)
        return current
