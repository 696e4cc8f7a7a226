"""Our engine: fedavg over the task's clients, two workers."""

import argparse
import json
import sys
from collections.abc import Iterator
from time import perf_counter

import torch

from benchmarks.engine.tasks import LEARNING_RATE, MOMENTUM, TASKS, Task
from datadefense.core.examples import Examples
from datadefense.core.local_training import Sgd
from datadefense.core.predictor import Layout
from datadefense.core.server import Server
from datadefense.defenses import FedAvg
from datadefense.schedules import Never
from datadefense.simulation.federation import Federation
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import begin, simulate
from datadefense.simulation.shards import Shards


def federation(task: Task) -> Federation:
    """Return a federation of all the task's clients, each in every round."""
    module, examples = task.build(), task.examples()
    layout = Layout.of_module(module)
    few = Examples(examples.inputs[:1], examples.labels[:1])
    return Federation(
        module=module,
        layout=layout,
        start=layout.flatten(module.state_dict()),
        train=examples,
        shards=Shards.of(torch.split(torch.arange(len(examples)), task.samples)),
        test=few,
        backdoor_test=few,
        training=Sgd(task.epochs, task.batch_size, LEARNING_RATE, MOMENTUM),
        schedule=Never(),
        clients_per_round=task.clients,
    )


def rounds(pool: Pool, count: int) -> Iterator[tuple[float, float]]:
    """Yield the seconds of training and of the whole round, evaluation aside."""
    server, defense = Server(), FedAvg()
    progress = begin(pool.federation, defense, server)
    start = perf_counter()
    for record, _ in simulate(
        pool.federation,
        defense,
        server,
        pool,
        progress=progress,
        rounds=count,
        evaluate_every=count + 1,
    ):
        whole = perf_counter() - start - record.seconds.get("evaluation", 0.0)
        yield record.seconds["training"], whole
        start = perf_counter()


def main() -> None:
    """Run some rounds as a command of its own and print their seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("rounds", type=int)
    options = parser.parse_args()
    torch.set_num_threads(1)
    task = TASKS[options.task]
    with Pool(federation(task), 2) as pool:
        seconds = [whole for _, whole in rounds(pool, options.rounds)]
    sys.stdout.write(json.dumps(seconds) + "\n")


if __name__ == "__main__":
    main()
