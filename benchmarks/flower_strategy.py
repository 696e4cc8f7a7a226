"""What our strategy costs beside Flower's own on the same replies: conversion, rules, memory.

Run as ``python -m benchmarks.flower_strategy [--out DIR] [--repeats N]``.
"""

import argparse
import dataclasses
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from benchmarks.aggregation import Case, make_defense, make_round
from benchmarks.flower_replies import FlowerRound, load_flower, strategies
from benchmarks.measure import Contender, others_share, peak_extra_bytes, race
from datadefense.core.defense import Defense
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.storage import write_text

CASES = (Case(10, 431_080), Case(100, 431_080), Case(10, 9_225_610))
RULES = ("fedavg", "krum", "multi-krum", "median", "trimmed-mean", "bulyan")


@dataclasses.dataclass(frozen=True, slots=True)
class NoWork(Defense[None]):
    """Leaves the model as it is: what remains is the work of the strategy."""

    def init(self, server: Server, params: Tensor) -> None:
        """Return the empty state."""
        return

    def aggregate(self, state: None, round: Round, server: Server) -> Aggregate[None]:
        """Return the model that was sent."""
        return Aggregate(round.global_params, None)


def measure(case: Case, repeats: int) -> dict[str, Any]:
    """Time the aggregation of a round by each strategy, and what it needs in memory."""
    from datadefense.flower import DefendedStrategy  # noqa: PLC0415 - Flower is an extra

    round = make_round(case)
    flower = FlowerRound.of(round)
    malicious = case.num_malicious
    ours = {
        "conversion": DefendedStrategy(NoWork()),
        **{rule: DefendedStrategy(make_defense(rule, case)) for rule in RULES},
    }
    asked = {name: flower.asked(strategy, round.global_params) for name, strategy in ours.items()}

    def contender(name: str, sent: Any, aggregate: Callable[[Any], Any]) -> Contender:
        return Contender(name, lambda: flower.answers(sent), aggregate)

    contenders = [
        contender(f"ours {name}", asked[name], partial(strategy.aggregate_train, 1))
        for name, strategy in ours.items()
    ] + [
        contender(f"flower {name}", asked["fedavg"], partial(strategy.aggregate_train, 1))
        for name, strategy in strategies(case.clients, malicious).items()
    ]
    watch = others_share()
    times = race(contenders, repeats)
    share = watch()
    memory = {}
    for one in contenders:
        if one.name in {"ours conversion", "ours fedavg", "flower fedavg"}:
            extra = peak_extra_bytes(partial(one.call, one.prepare()))
            memory[one.name] = None if extra is None else extra / round.updates.nbytes
    milliseconds = {name: found.median_ms for name, found in times.items()}
    plain = milliseconds["flower fedavg"]
    return {
        "nodes": case.clients,
        "dim": case.dim,
        "others_share": share,
        "milliseconds": milliseconds,
        "conversion_over_flower_fedavg": milliseconds["ours conversion"] / plain,
        "added_to_flower_fedavg_percent": 100 * (milliseconds["ours fedavg"] / plain - 1),
        "times_faster": {
            rule: milliseconds[f"flower {rule}"] / milliseconds[f"ours {rule}"] for rule in RULES
        },
        "extra_memory_in_rounds": memory,
    }


def markdown(results: dict[str, Any]) -> str:
    """Return the results as a page."""
    lines = [
        "# Our strategy beside Flower's, on the same replies",
        "",
        f"`{results['command']}`, {results['date']}, {results['machine']}. One call of "
        "`aggregate_train`: from the replies as they came to the arrays that are sent next. "
        "Medians in milliseconds, contenders in turns.",
        "",
        "| nodes x parameters | rule | ours | Flower's | times faster |",
        "|---|---|---|---|---|",
    ]
    for case in results["cases"]:
        size = f"{case['nodes']} x {case['dim']:,}"
        found = case["milliseconds"]
        for rule in RULES:
            lines.append(
                f"| {size} | {rule} | {found[f'ours {rule}']:.1f} | {found[f'flower {rule}']:.1f} "
                f"| {case['times_faster'][rule]:.1f} |"
            )
        lines.append(f"| {size} | conversion alone | {found['ours conversion']:.1f} | | |")
    lines += ["", "Conversion is a strategy whose defense does nothing: reading, checking, and"]
    lines[-1] += (
        " writing arrays. As a part of Flower's own FedAvg, and what our FedAvg adds to it:"
    )
    lines += [
        "",
        "| nodes x parameters | conversion / FedAvg | our FedAvg | extra memory, rounds |",
    ]
    lines += ["|---|---|---|---|"]
    for case in results["cases"]:
        memory = case["extra_memory_in_rounds"]
        shown = ", ".join(
            f"{name} {'?' if value is None else format(value, '.2f')}"
            for name, value in memory.items()
        )
        lines.append(
            f"| {case['nodes']} x {case['dim']:,} | {case['conversion_over_flower_fedavg']:.2f} "
            f"| {case['added_to_flower_fedavg_percent']:+.0f} % | {shown} |"
        )
    return "\n".join(lines) + "\n"


def main() -> None:
    """Measure all cases and write them."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--repeats", type=int, default=7)
    options = parser.parse_args()
    load_flower()
    results = {
        "command": shlex.join(["python", "-m", "benchmarks.flower_strategy", *sys.argv[1:]]),
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "machine": f"{os.cpu_count()} cores, {platform.machine()}, {torch.get_num_threads()} "
        f"threads, torch {torch.__version__}, flwr {version('flwr')}",
        "cases": [measure(case, options.repeats) for case in CASES],
    }
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "flower.json", json.dumps(results, indent=2) + "\n")
    page = markdown(results)
    write_text(options.out / "flower.md", page)
    print(page)


if __name__ == "__main__":
    main()
