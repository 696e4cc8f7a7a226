"""Local training by stochastic gradient descent: of a vector, and of a resident module."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.nn.functional import cross_entropy
from torch.optim.sgd import sgd as sgd_step

from datadefense.core.buffers import smallest_batch
from datadefense.core.compute import Compute
from datadefense.core.examples import Examples
from datadefense.core.predictor import Layout, Predictor
from datadefense.core.server import Predict
from datadefense.core.settings import SettingsError, check_float, check_int, setting

Augment = Callable[[Tensor, torch.Generator], Tensor]
"""``augment(inputs [batch, ...], generator) -> inputs``, random crops and the like."""
Loss = Callable[[nn.Module, Tensor, Tensor], Tensor]
"""``loss(module, inputs, labels)``: what a step descends."""
Step = Callable[[Tensor, Tensor], None]
"""``step(inputs, labels)``: descend on one mini-batch."""
AfterStep = Callable[[int, bool], None]
"""``after_step(step, is_last)``: called with the number of the step in its epoch."""


def plain_loss(module: nn.Module, inputs: Tensor, labels: Tensor) -> Tensor:
    """Return the mean cross-entropy."""
    return cross_entropy(module(inputs), labels)


@dataclass(frozen=True, slots=True)
class Sgd:
    """SGD with momentum on the mean cross-entropy of shuffled mini-batches."""

    epochs: int = setting(1, "passes over the examples")
    batch_size: int = setting(32, "examples a step")
    learning_rate: float = setting(0.01, "step size")
    momentum: float = setting(0.9, "share of the last step that is kept")
    weight_decay: float = setting(0.0, "weight decay")
    decay: float = setting(1.0, "factor on the step size from one round to the next")

    def __post_init__(self) -> None:
        check_int("epochs", self.epochs, 1)
        check_int("batch_size", self.batch_size, 1)
        check_float("learning_rate", self.learning_rate, above=0)
        check_float("momentum", self.momentum, minimum=0, below=1)
        check_float("weight_decay", self.weight_decay, minimum=0)
        check_float("decay", self.decay, above=0, maximum=1)

    def in_round(self, index: int) -> "Sgd":
        """Return the settings of round ``index``: the first has the full step size."""
        rate = self.learning_rate * self.decay ** (index - 1)
        return replace(self, learning_rate=rate, decay=1.0)

    def descend(
        self,
        examples: Examples,
        generator: torch.Generator,
        step: Step,
        *,
        smallest_batch: int = 1,
        augment: Augment | None = None,
        after_step: AfterStep | None = None,
    ) -> None:
        """Take a step on every mini-batch, shuffled anew each epoch: the loop of all training.

        A last batch of fewer than ``smallest_batch`` examples is left out: where a norm divides by
        the deviation in the batch, one example has none.
        """
        if self.batch_size < smallest_batch:
            raise SettingsError(
                f"batch_size must be >= {smallest_batch} for a model with BatchNorm, "
                f"got {self.batch_size}"
            )
        for _ in range(self.epochs):
            order = torch.randperm(len(examples), generator=generator)
            batches = torch.split(order, self.batch_size)
            if len(batches[-1]) < smallest_batch:
                batches = batches[:-1]
            for place, index in enumerate(batches):
                batch = examples.take(index)
                inputs = batch.inputs
                if augment is not None:
                    inputs = augment(inputs, generator)
                step(inputs, batch.labels)
                if after_step is not None:
                    after_step(place, place == len(batches) - 1)

    def train(
        self,
        predict: Predict,
        params: Float[Tensor, " dim"],
        examples: Examples,
        generator: torch.Generator,
    ) -> Float[Tensor, " dim"]:
        """Return the parameters after training from ``params``, which stay as they are.

        With a `Predictor` the running statistics of norms move too, as a client's do. Any other
        function is taken as it is.
        """
        current = params.detach().clone()
        velocity = torch.zeros_like(current)
        learning = predict.learning(params) if isinstance(predict, Predictor) else None

        def step(inputs: Tensor, labels: Tensor) -> None:
            point = current.detach().requires_grad_()
            loss = cross_entropy((learning or predict)(point, inputs), labels)
            (gradient,) = torch.autograd.grad(loss, point)
            velocity.mul_(self.momentum).add_(gradient).add_(current, alpha=self.weight_decay)
            current.sub_(velocity, alpha=self.learning_rate)

        smallest = 1 if learning is None else learning.smallest_batch
        self.descend(examples, generator, step, smallest_batch=smallest)
        if learning is not None:
            learning.write_statistics(current)
        return current


class Trainer:
    """One module that trains any client: parameters are loaded, trained, and read back.

    ``compute`` says how its passes are computed (`Compute.usual`); the vector always has the
    module's own order.
    """

    def __init__(
        self,
        module: nn.Module,
        layout: Layout,
        device: str = "cpu",
        compute: Compute | None = None,
    ) -> None:
        self.layout = layout
        self.device = torch.device(device)
        self.compute = compute or Compute.usual(module)
        self.module = self.compute.arrange_module(module.to(device=self.device))
        tensors = dict(self.module.named_parameters()) | dict(self.module.named_buffers())
        self.tensors = [tensors[slot.name] for slot in layout.slots]
        carried = {slot.name for slot in layout.slots}
        self._first_buffers = [
            (t, t.clone()) for name, t in module.named_buffers() if name not in carried
        ]
        self._smallest_batch = smallest_batch(module)

    def load(self, params: Float[Tensor, " dim"]) -> None:
        """Set the module's parameters; buffers that are not in the vector are as they were first.

        Training moves these too (a norm's statistics, its counter), and no client may begin with
        what another one left.
        """
        with torch.no_grad():
            for buffer, first in self._first_buffers:
                buffer.copy_(first)
            for tensor, view in zip(self.tensors, self._views(params), strict=True):
                tensor.copy_(view)

    def write_update(
        self, start: Float[Tensor, " dim"], out: Float[Tensor, " dim"]
    ) -> Float[Tensor, " dim"]:
        """Write what training changed, parameters less ``start``, into ``out``; return it."""
        with torch.no_grad():
            for tensor, before, view in zip(
                self.tensors, self._views(start), self._views(out), strict=True
            ):
                torch.sub(tensor.to(view.device), before, out=view)
        return out

    def train(
        self,
        sgd: Sgd,
        examples: Examples,
        generator: torch.Generator,
        *,
        augment: Augment | None = None,
        loss: Loss = plain_loss,
        before_step: Callable[[], None] | None = None,
        after_step: AfterStep | None = None,
    ) -> None:
        """Train in place on shuffled mini-batches; ``before_step`` may change the gradients."""
        self.module.train()
        parameters = [tensor for tensor in self.tensors if tensor.requires_grad]
        velocities: list[Tensor | None] = [None] * len(parameters)
        there = Examples(examples.inputs.to(self.device), examples.labels.to(self.device))

        def step(inputs: Tensor, labels: Tensor) -> None:
            for parameter in parameters:
                parameter.grad = None
            with self.compute.passes(self.device.type):
                value = loss(self.module, self.compute.arrange(inputs), labels)
            value.backward()  # type: ignore[no-untyped-call]
            if before_step is not None:
                before_step()
            _step(sgd, parameters, velocities)

        sgd.descend(
            there,
            generator,
            step,
            smallest_batch=self._smallest_batch,
            augment=augment,
            after_step=after_step,
        )

    def count_correct(self, examples: Examples, batch_size: int = 500) -> int:
        """Return how many of the examples are classified as labelled, computed in float32."""
        self.module.eval()
        correct = 0
        with torch.no_grad():
            for start in range(0, len(examples), batch_size):
                part = slice(start, start + batch_size)
                inputs, labels = self.compute.arrange(examples.inputs[part]), examples.labels[part]
                guesses = self.module(inputs.to(self.device)).argmax(1)
                correct += int((guesses == labels.to(self.device)).sum())
        return correct

    def _views(self, vector: Float[Tensor, " dim"]) -> list[Tensor]:
        return [vector[slot.start : slot.stop].view(slot.shape) for slot in self.layout.slots]


@torch.no_grad()
def _step(sgd: Sgd, parameters: list[Tensor], velocities: list[Tensor | None]) -> None:
    """Take one step along the gradients; parameters without one stay.

    What ``torch.optim.SGD`` does, to the bit, without making one: the first in a process loads
    PyTorch's compiler, which takes a second.
    """
    used = [row for row, parameter in enumerate(parameters) if parameter.grad is not None]
    used_velocities = [velocities[row] for row in used]
    sgd_step(
        [parameters[row] for row in used],
        [gradient for parameter in parameters if (gradient := parameter.grad) is not None],
        used_velocities,
        fused=True,
        weight_decay=sgd.weight_decay,
        momentum=sgd.momentum,
        lr=sgd.learning_rate,
        dampening=0.0,
        nesterov=False,
        maximize=False,
    )
    for row, velocity in zip(used, used_velocities, strict=True):
        velocities[row] = velocity
