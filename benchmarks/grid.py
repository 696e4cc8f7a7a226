"""Runs of a grid, each once: kept as lines of JSON, known by the key of their configuration."""

import argparse
import dataclasses
import json
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from datadefense.experiments.experiment import Experiment
from datadefense.experiments.run import start
from datadefense.simulation.pool import Pool


def run_one(configured: Experiment, data: Path | None, workers: int) -> dict[str, Any]:
    """Run an experiment and return its summary and the key of its configuration."""
    with tempfile.TemporaryDirectory() as folder:
        run = start(configured, Path(folder) / "run", data)
        with Pool(run.federation, workers) as pool:
            for record in run.rounds(pool):
                if record.asr_percent is not None:
                    print(
                        f"{configured.setup} {configured.attack} {configured.defense} "
                        f"{configured.seed}: round {record.round} "
                        f"MA {record.ma_percent:.1f} ASR {record.asr_percent:.1f}",
                        flush=True,
                    )
            summary = run.finish(pool)
    return {"key": configured.key(), **dataclasses.asdict(summary)}


def read_runs(store: Path) -> dict[str, dict[str, Any]]:
    """Return the runs that are there, by key."""
    if not store.exists():
        return {}
    runs = [json.loads(line) for line in store.read_text().splitlines()]
    return {run["key"]: run for run in runs}


def run_missing(
    wanted: Iterable[Experiment], store: Path, data: Path | None, workers: int
) -> dict[str, dict[str, Any]]:
    """Run what the store does not have yet, adding a line for each; return all by key."""
    store.parent.mkdir(parents=True, exist_ok=True)
    runs = read_runs(store)
    for configured in wanted:
        if configured.key() in runs:
            continue
        result = run_one(configured, data, workers)
        runs[configured.key()] = result
        with store.open("a") as lines:
            lines.write(json.dumps(result) + "\n")
    return runs


def grid_parser(description: str | None, out: str) -> argparse.ArgumentParser:
    """Return a parser with the options that every grid has."""
    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--data", type=Path)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--out", type=Path, default=Path(out))
    return parser
