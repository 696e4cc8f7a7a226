"""Flower's simulation (Ray, two actors of one thread): FedAvg over the task's clients."""

import argparse
import json
import logging
import sys
import tempfile
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from flwr.app import ArrayRecord, Context, Message, MetricRecord, RecordDict
from flwr.clientapp import ClientApp
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg
from flwr.simulation import run_simulation

from benchmarks.engine import naive
from benchmarks.engine.tasks import TASKS, examples_once


class TimedFedAvg(FedAvg):
    """FedAvg that notes when rounds begin and end."""

    def __init__(self, clients: int) -> None:
        super().__init__(
            fraction_train=1.0,
            fraction_evaluate=0.0,
            min_train_nodes=clients,
            min_available_nodes=clients,
        )
        self.seconds: list[float] = []
        self._start = 0.0

    def configure_train(self, *arguments: Any, **named: Any) -> Any:
        """Start the clock."""
        self._start = perf_counter()
        return super().configure_train(*arguments, **named)

    def aggregate_train(self, *arguments: Any, **named: Any) -> Any:
        """Stop it."""
        result = super().aggregate_train(*arguments, **named)
        self.seconds.append(perf_counter() - self._start)
        return result


def client_app(name: str) -> ClientApp:
    """Return a client that trains as the naive loop does, with one thread."""
    app = ClientApp()
    task = TASKS[name]

    @app.train()
    def train(message: Message, context: Context) -> Message:
        torch.set_num_threads(1)
        module = task.build()
        module.load_state_dict(message.content["arrays"].to_torch_state_dict())  # type: ignore[union-attr]
        client = int(context.node_config["partition-id"])
        naive.train(task, module, task.of_client(examples_once(name), client))
        content = RecordDict(
            {
                "arrays": ArrayRecord(module.state_dict()),
                "metrics": MetricRecord({"num-examples": task.samples}),
            }
        )
        return Message(content=content, reply_to=message)

    return app


def main() -> None:
    """Run some rounds as a command of its own and print their seconds."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("task", choices=TASKS)
    parser.add_argument("rounds", type=int)
    options = parser.parse_args()
    logging.getLogger("flwr").setLevel(logging.ERROR)
    task = TASKS[options.task]
    server = ServerApp()
    out = Path(tempfile.mkdtemp()) / "seconds.json"

    @server.main()
    def run(grid: Grid, _context: Context) -> None:
        strategy = TimedFedAvg(task.clients)
        arrays = ArrayRecord(task.build().state_dict())
        strategy.start(grid, arrays, num_rounds=options.rounds)
        out.write_text(json.dumps(strategy.seconds))

    run_simulation(
        server,
        client_app(options.task),
        num_supernodes=task.clients,
        backend_config={"client_resources": {"num_cpus": 1, "num_gpus": 0.0}},
    )
    sys.stdout.write(out.read_text() + "\n")


if __name__ == "__main__":
    main()
