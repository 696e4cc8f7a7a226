"""What a round of aggregation costs: our rules beside Flower's, plain torch and one pass.

Run as ``python -m benchmarks.aggregation [--out DIR] [--repeats N] [--quick]``.
"""

import argparse
import dataclasses
import gc
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import Tensor

from benchmarks.aggregation_report import NOTES, CaseResult, RuleResult, markdown, targets
from benchmarks.flower_replies import (
    FlowerRound,
    admit,
    bulyan_of,
    flatten,
    load_flower,
    strategies,
)
from benchmarks.measure import Contender, Times, others_share, peak_extra_bytes, race
from benchmarks.plain_torch import PLAIN, Plain
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.core.storage import write_atomically
from datadefense.defenses import DEFENSES, Defense, create

PASSES: Mapping[str, int] = {
    "fedavg": 1,
    "krum": 1,
    "multi-krum": 2,
    "bulyan": 2,
    "trimmed-mean": 1,
    "median": 1,
    "rfa": 2,
    "ndc": 2,
    "ndc-adaptive": 2,
    "weak-dp": 2,
    "sparsefed": 2,
    "fltrust": 3,
}
"""The rules that are measured, and how often each has to read the matrix."""
ASSUME = ("krum", "multi-krum", "bulyan", "trimmed-mean")
"""The rules that assume a number of attackers."""
SUM, MEAN, GATE = "updates.sum(0)", "torch weighted_mean", "gate"
FROZEN = "flower bulyan, heap frozen"


@dataclasses.dataclass(frozen=True, slots=True)
class Case:
    """The size of a round, and whether to measure memory in it."""

    clients: int
    dim: int
    memory: bool = False

    def num_malicious(self, rule: str) -> int:
        """A fifth of the clients; Bulyan does not bear that in a small round."""
        return 1 if rule == "bulyan" and self.clients < 100 else self.clients // 5


CASES = (Case(10, 431_080), Case(100, 431_080), Case(10, 9_225_610, memory=True))


def make_round(case: Case) -> Round:
    """Draw a round: honest-sized updates, 50 to 500 examples a client."""
    random = generator(0, "benchmark", case.clients, case.dim)
    return Round(
        index=1,
        global_params=torch.randn(case.dim, generator=random).mul_(0.05),
        updates=torch.randn(case.clients, case.dim, generator=random).mul_(0.01),
        num_examples=torch.randint(50, 501, (case.clients,), generator=random),
        client_ids=tuple(range(case.clients)),
    )


def make_server() -> Server:
    """Give FLTrust a linear model of the first 160 parameters and one batch of examples."""
    random = generator(0, "benchmark", "server")
    inputs = torch.randn(32, 16, generator=random)
    labels = torch.randint(0, 10, (32,), generator=random)
    return Server(lambda params, x: x @ params[:160].view(16, 10), Examples(inputs, labels))


def make_defense(rule: str, case: Case) -> Defense[Any]:
    """Make a rule with the settings that give the same result as Flower's."""
    settings = {"num_malicious": str(case.num_malicious(rule))} if rule in ASSUME else {}
    if rule == "multi-krum":
        settings["weighting"] = "examples"
    return create(rule, settings)


def contenders(case: Case, round: Round, server: Server, flower: FlowerRound) -> list[Contender]:
    """List all that is timed; who reads the matrix finds it as warm as the cache allows."""
    shares = round.shares()

    def on_matrix(name: str, call: Callable[[], object]) -> Contender:
        return Contender(name, lambda: round.updates.sum(0), lambda _: call())

    def plain(function: Plain) -> Contender:
        rule = next(rule for rule in PLAIN if PLAIN[rule] is function)
        call = partial(function, round.updates, shares, case.num_malicious(rule))
        return on_matrix(f"torch {function.__name__}", call)

    def ours(rule: str) -> Contender:
        defense = make_defense(rule, case)
        state = carried_state(defense, round, server)
        return on_matrix(f"ours {rule}", partial(defense.aggregate, state, round, server))

    mean, *others = (plain(function) for function in dict.fromkeys(PLAIN.values()))
    found = [on_matrix(SUM, lambda: round.updates.sum(0)), mean, *map(ours, PASSES), *others]
    found.append(Contender(GATE, flower.replies, lambda sent: admit(sent, round.global_params)))
    for rule, strategy in strategies(case.clients, case.num_malicious).items():
        call = partial(strategy.aggregate_train, 1)
        found.append(Contender(f"flower {rule}", flower.replies, call))
        if rule == "bulyan":
            found.append(Contender(FROZEN, flower.replies, partial(frozen_heap, call)))
    return found


def frozen_heap(call: Callable[[Any], Any], argument: Any) -> Any:
    """Call with all that exists so far hidden from the garbage collector."""
    gc.freeze()
    try:
        return call(argument)
    finally:
        gc.unfreeze()


def carried_state(defense: Defense[Any], round: Round, server: Server) -> Any:
    """Return the state after one round: that of a defense at work, not its zeros."""
    state = defense.init(server, round.global_params)
    return defense.aggregate(state, round, server).state


def extra_memory(defense: Defense[Any], round: Round, server: Server) -> float | None:
    """Return what a round needs at most, result and next state included, in matrices."""
    state = carried_state(defense, round, server)
    extra = peak_extra_bytes(partial(defense.aggregate, state, round, server))
    return None if extra is None else extra / round.updates.nbytes


def differences(ours: Tensor, theirs: Any) -> Tensor:
    """Return how far our model is from what a strategy returned, in each parameter."""
    arrays, _ = theirs
    return (ours - flatten(arrays)).abs()


def measure(case: Case, repeats: int) -> CaseResult:
    """Time everything in one case, then compare results and measure memory."""
    round, server = make_round(case), make_server()
    flower = FlowerRound.of(round)
    watch = others_share()
    times = race(contenders(case, round, server, flower), repeats)
    share = watch()

    def result(rule: str) -> RuleResult:
        ours, theirs = times[f"ours {rule}"], times.get(f"flower {rule}")
        model: Tensor = ours.first.params
        same_choice = apart = None
        if rule == "bulyan":
            given = bulyan_of(ours.first.evidence["chosen"])
            found = differences(model, given.aggregate_train(1, flower.replies()))
            same_choice, apart = float(found.max()), int((found > 1e-6).sum())
        memory = extra_memory(make_defense(rule, case), round, server) if case.memory else None
        return RuleResult(
            rule=rule,
            passes=PASSES[rule],
            ours_ms=ours.median_ms,
            flower_ms=theirs.median_ms if theirs else None,
            flower_best_ms=theirs.best_ms if theirs else None,
            flower_without_gc_ms=times[FROZEN].median_ms if rule == "bulyan" else None,
            torch_ms=times[f"torch {PLAIN[rule].__name__}"].median_ms if rule in PLAIN else None,
            difference=float(differences(model, theirs.first).max()) if theirs else None,
            difference_same_choice=same_choice,
            apart_same_choice=apart,
            extra_memory=memory,
        )

    return CaseResult(
        clients=case.clients,
        dim=case.dim,
        sum_ms=times[SUM].median_ms,
        weighted_sum_ms=times[MEAN].median_ms,
        gate_ms=times[GATE].median_ms,
        others_share=share,
        rules=tuple(result(rule) for rule in PASSES),
        samples_ms={name: _milliseconds(found) for name, found in times.items()},
    )


def _milliseconds(times: Times) -> tuple[float, ...]:
    return tuple(1e3 * seconds for seconds in times.seconds)


def environment() -> dict[str, Any]:
    """Describe the machine and the software, for the record."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    models = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    start = perf_counter()
    gc.collect()
    collect_ms = 1e3 * (perf_counter() - start)
    return {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "command": shlex.join(sys.orig_argv),
        "cpu": models[0] if models else platform.processor(),
        "cores": os.cpu_count(),
        "load_average": os.getloadavg(),
        "threads": torch.get_num_threads(),
        "python": platform.python_version(),
        "torch": torch.__version__,
        "numpy": version("numpy"),
        "flwr": version("flwr"),
        "gc_collect_ms": collect_ms,
    }


def main(arguments: Sequence[str] | None = None) -> None:
    """Measure, print and store."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.aggregation", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--repeats", type=int, default=5, help="timed turns of each contender")
    parser.add_argument("--quick", action="store_true", help="one turn of the smallest case")
    options = parser.parse_args(arguments)
    if options.repeats < 1:
        parser.error(f"--repeats must be >= 1, got {options.repeats}")
    load_flower()
    described = environment()
    cases = [
        measure(case, 1 if options.quick else options.repeats)
        for case in (CASES[:1] if options.quick else CASES)
    ]
    reached = targets(cases)
    page = markdown(described, cases, reached)
    record = {
        "environment": described,
        "repeats": 1 if options.quick else options.repeats,
        "cases": [dataclasses.asdict(case) for case in cases],
        "targets": [dataclasses.asdict(target) for target in reached],
        "left_out": sorted(set(DEFENSES) - set(PASSES)),
        "notes": NOTES,
    }
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "aggregation.json", json.dumps(record, indent=1) + "\n")
    write_text(options.out / "aggregation.md", page)
    print(page)


def write_text(path: Path, text: str) -> None:
    """Write a text file atomically."""

    def write(part: Path) -> None:
        part.write_text(text, encoding="utf-8")

    write_atomically(path, write)


if __name__ == "__main__":
    main()
