"""The server: a strategy as in any Flower app, with a defense around it."""

import json
from pathlib import Path

from flwr.app import ArrayRecord, Context, MetricRecord
from flwr.serverapp import Grid, ServerApp
from flwr.serverapp.strategy import FedAvg, Strategy
from torch import nn

from datadefense.flower import DefendedStrategy
from defended_digits import task

app = ServerApp()


@app.main()
def main(grid: Grid, context: Context) -> None:
    """Run the rounds; with a state in the folder, those that are left."""
    config, seed = context.run_config, int(context.run_config["seed"])
    model = task.warm_model(seed)
    results = Results(Path(str(config["out"]))) if config["out"] else None

    def evaluate(index: int, arrays: ArrayRecord) -> MetricRecord:
        model.load_state_dict(arrays.to_torch_state_dict())
        found = task.judge(model, seed)
        if results is not None:
            results.add(index, found)
        return MetricRecord(found)

    make_strategy(config, model, seed).start(
        grid,
        ArrayRecord(model.state_dict()),
        num_rounds=int(config["num-server-rounds"]),
        timeout=float(config["timeout"]),
        evaluate_fn=evaluate,
    )


def make_strategy(config: dict, model: nn.Module, seed: int) -> Strategy:
    """Return Flower's strategy, and around it the defense."""
    nodes = int(config["nodes"])
    fedavg = FedAvg(min_available_nodes=nodes, min_train_nodes=nodes, fraction_evaluate=0.0)
    if config["defense"] == "flower-fedavg":
        return fedavg
    return DefendedStrategy(
        str(config["defense"]),
        inner=fedavg,
        model=model,
        defense_set=task.server_set(model, seed),
        seed=seed,
        min_nodes=int(config["min-nodes"]),
        wait_seconds=float(config["wait-seconds"]),
        folder=str(config["out"]) or None,
    )


class Results:
    """``result.json``: what the model was worth after each round, also of a run before this."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "result.json"
        self.rounds = json.loads(self.path.read_text()) if self.path.exists() else {}

    def add(self, index: int, found: dict[str, float]) -> None:
        """Write down a round, in place of an earlier go at it."""
        self.rounds[str(index)] = found
        written = self.path.with_suffix(".new")
        written.write_text(json.dumps(self.rounds, indent=2) + "\n")
        written.replace(self.path)
