"""pfl-research with two workers (gloo, one thread each): FedAvg over the task's clients.

Run by a Python that has pfl, whose pins do not fit ours; started once a worker with the variables
PFL_WORKER_ADDRESSES and PFL_WORKER_RANK. Its default aggregator sums: no update reaches the server.
"""

import argparse
import json
import os
import sys
from time import perf_counter
from typing import Any

import torch
from pfl.aggregate.simulate import SimulatedBackend
from pfl.algorithm.base import NNAlgorithmParams
from pfl.algorithm.federated_averaging import FederatedAveraging
from pfl.callback.base import TrainingProcessCallback
from pfl.data.dataset import Dataset
from pfl.data.federated_dataset import FederatedDataset
from pfl.data.sampling import get_user_sampler
from pfl.hyperparam import NNEvalHyperParams, NNTrainHyperParams
from pfl.metrics import Metrics, Weighted
from pfl.model.pytorch import PyTorchModel
from torch import Tensor, nn
from torch.nn.functional import cross_entropy

from benchmarks.engine.tasks import LEARNING_RATE, MOMENTUM, TASKS


class WithLoss(nn.Module):
    """A model with the loss that pfl asks it for."""

    def __init__(self, body: nn.Module) -> None:
        super().__init__()
        self.body = body

    def forward(self, inputs: Tensor) -> Any:
        """Return the logits."""
        return self.body(inputs)

    def loss(self, inputs: Tensor, labels: Tensor, is_eval: bool = False) -> Tensor:
        """Return the mean cross-entropy."""
        self.train(not is_eval)
        return cross_entropy(self(inputs), labels)

    def metrics(self, inputs: Tensor, labels: Tensor, is_eval: bool = True) -> dict[str, Any]:
        """Return the summed loss."""
        loss = cross_entropy(self(inputs), labels, reduction="sum").item()
        return {"loss": Weighted(loss, len(labels))}


class Clock(TrainingProcessCallback):  # type: ignore[misc]
    """Notes the seconds of each iteration."""

    def __init__(self) -> None:
        self.seconds: list[float] = []
        self._start = perf_counter()

    def after_central_iteration(
        self, aggregate_metrics: Metrics, model: Any, *, central_iteration: int
    ) -> tuple[bool, Metrics]:
        """Note one."""
        self.seconds.append(perf_counter() - self._start)
        self._start = perf_counter()
        return False, Metrics()


def main() -> None:
    """Run some rounds and print their seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("rounds", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    task = TASKS[options.task]
    examples = task.examples()

    def make(client: int) -> Dataset:
        return Dataset(list(task.of_client(examples, client)))

    users = FederatedDataset(make, get_user_sampler("minimize_reuse", list(range(task.clients))))
    module = WithLoss(task.build())
    model = PyTorchModel(
        module,
        lambda params, lr: torch.optim.SGD(params, lr, MOMENTUM),
        torch.optim.SGD(module.parameters(), 1.0),
    )
    clock = Clock()
    FederatedAveraging().run(
        backend=SimulatedBackend(users, users),
        model=model,
        algorithm_params=NNAlgorithmParams(
            central_num_iterations=options.rounds,
            evaluation_frequency=1000,
            train_cohort_size=task.clients,
            val_cohort_size=0,
        ),
        model_train_params=NNTrainHyperParams(
            local_learning_rate=LEARNING_RATE,
            local_num_epochs=task.epochs,
            local_batch_size=task.batch_size,
        ),
        model_eval_params=NNEvalHyperParams(local_batch_size=None),
        callbacks=[clock],
    )
    if os.environ.get("PFL_WORKER_RANK", "0") == "0":
        sys.stdout.write(json.dumps(clock.seconds) + "\n")


if __name__ == "__main__":
    main()
