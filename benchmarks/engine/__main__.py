"""Time the engine beside its ceiling and others: ``python -m benchmarks.engine``.

    python -m benchmarks.engine [--tasks A,B,C] [--repeats 2] [--pfl-python PATH]

Two measurements. Rounds: ceiling, engine and naive loop in one process, in turns, so that what
disturbs one disturbs all. Commands: ten rounds from start to finish as processes of their own, our
engine, Flower's simulation (extra ``trainer``) and pfl (a Python that has it), in turns as well.
Writes ``results/benchmarks/engine.md`` and ``engine.json``.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
from dataclasses import asdict, dataclass
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter

import torch

from benchmarks.engine import naive, ours
from benchmarks.engine.ceiling import Ceiling
from benchmarks.engine.tasks import TASKS
from datadefense.core.storage import write_text
from datadefense.simulation.pool import Pool

COMMAND_ROUNDS = {"A": 10, "B": 3, "C": 10}


@dataclass(frozen=True, slots=True)
class Rounds:
    """Seconds of each round by contender; the first round of each is not among them."""

    task: str
    ceiling: list[float]
    training: list[float]
    whole: list[float]
    naive: list[float]


@dataclass(frozen=True, slots=True)
class Command:
    """Seconds of a whole command and of each of its rounds."""

    task: str
    contender: str
    total: float
    rounds: list[float]

    @property
    def steady(self) -> float:
        """Median seconds of a round after the first."""
        return statistics.median(self.rounds[1:])


def race_rounds(name: str) -> Rounds:
    """Time rounds of ceiling, engine and naive loop in turns."""
    task = TASKS[name]
    threads = torch.get_num_threads()
    seconds = Rounds(name, [], [], [], [])
    plain, loop = Ceiling(name), naive.rounds(task)
    with Pool(ours.federation(task), 2) as pool:
        engine = ours.rounds(pool, task.rounds + 1)
        for turn in range(task.rounds + 1):
            start = perf_counter()
            plain.round()
            ceiling = perf_counter() - start
            torch.set_num_threads(1)
            training, whole = next(engine)
            torch.set_num_threads(threads)
            slow = loop() if turn < 4 else None
            if turn:
                seconds.ceiling.append(ceiling)
                seconds.training.append(training)
                seconds.whole.append(whole)
                if slow is not None:
                    seconds.naive.append(slow)
    plain.close()
    return seconds


def command(name: str, contender: str, pfl_python: str | None) -> Command:
    """Run a contender's command and return its seconds."""
    count = COMMAND_ROUNDS[name]
    environment = os.environ | {"FLWR_TELEMETRY_ENABLED": "0", "FLWR_DISABLE_UPDATE_CHECK": "1"}
    start = perf_counter()
    if contender == "pfl":
        addresses = "127.0.0.1:29710,127.0.0.1:29711"
        environment |= {"PFL_WORKER_ADDRESSES": addresses, "PYTHONPATH": "src:."}
        workers = [
            subprocess.Popen(
                [pfl_python or "", "-m", "benchmarks.engine.pfl_two_workers", name, str(count)],
                env=environment | {"PFL_WORKER_RANK": str(rank)},
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
            for rank in range(2)
        ]
        text, _ = (worker.communicate()[0] for worker in workers)
    else:
        module = "ours" if contender == "datadefense" else "flower"
        text = subprocess.run(
            [sys.executable, "-m", f"benchmarks.engine.{module}", name, str(count)],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        ).stdout
    total = perf_counter() - start
    return Command(name, contender, total, json.loads(text.splitlines()[-1]))


def report(rounds: list[Rounds], commands: list[Command]) -> str:
    """Return the tables."""
    lines = [
        "# The engine beside its ceiling, Flower's simulation, pfl and a naive loop",
        "",
        f"Made by `python -m benchmarks.engine`; {os.cpu_count()} cores, "
        f"torch {torch.__version__}.",
        *(f"Task {name}: {TASKS[name].about}." for name in TASKS),
        "",
        "Rounds in turns, median seconds after the first. Ceiling: the same steps in two plain",
        "processes, no federation. Training: the engine's training part; whole: a FedAvg round.",
        "",
        "| task | ceiling | training | of ceiling | whole round | of ceiling "
        "| naive loop (2 threads) |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in rounds:
        ceiling, training, whole, slow = (
            statistics.median(v) for v in (one.ceiling, one.training, one.whole, one.naive)
        )
        shares = (f"{100 * ceiling / seconds:.0f} %" for seconds in (training, whole))
        first, second = shares
        lines.append(
            f"| {one.task} | {ceiling:.2f} | {training:.2f} | {first} | {whole:.2f} | {second} "
            f"| {slow:.2f} ({slow / whole:.2f} times ours) |"
        )
    lines += [
        "",
        "Whole commands in turns: seconds of a round after the first (median), and of the command",
        "from start to finish, import of torch included; the better of the repeats. Beside them "
        "how",
        "many times ours.",
        "",
        "| task | contender | rounds | a round | times ours | whole command | times ours |",
        "|---|---|---|---|---|---|---|",
    ]
    for name in TASKS:
        best = {
            who: (
                min(c.steady for c in commands if (c.task, c.contender) == (name, who)),
                min(c.total for c in commands if (c.task, c.contender) == (name, who)),
            )
            for who in dict.fromkeys(c.contender for c in commands if c.task == name)
        }
        for who, (steady, total) in best.items():
            mine = best["datadefense"]
            lines.append(
                f"| {name} | {who} | {COMMAND_ROUNDS[name]} | {steady:.2f} "
                f"| {steady / mine[0]:.2f} | {total:.1f} | {total / mine[1]:.2f} |"
            )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tasks", default="A,B,C")
    parser.add_argument("--command-tasks", default="A,B")
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--pfl-python", help="a Python with pfl==0.6.0; left out without it")
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    options = parser.parse_args()
    rounds = []
    for name in options.tasks.split(","):
        rounds.append(race_rounds(name))
        sys.stdout.write(f"{json.dumps(asdict(rounds[-1]))}\n")
        sys.stdout.flush()
    contenders = ["datadefense"]
    contenders += ["flower"] if find_spec("ray") is not None else []
    contenders += ["pfl"] if options.pfl_python else []
    commands = []
    for name in filter(None, options.command_tasks.split(",")):
        for _ in range(options.repeats if name == "A" else 1):
            for contender in contenders:
                commands.append(command(name, contender, options.pfl_python))
                sys.stdout.write(f"{json.dumps(asdict(commands[-1]))}\n")
                sys.stdout.flush()
    options.out.mkdir(parents=True, exist_ok=True)
    raw = {"rounds": [asdict(r) for r in rounds], "commands": [asdict(c) for c in commands]}
    write_text(options.out / "engine.json", json.dumps(raw) + "\n")
    write_text(options.out / "engine.md", report(rounds, commands))
    sys.stdout.write(report(rounds, commands))


if __name__ == "__main__":
    main()
