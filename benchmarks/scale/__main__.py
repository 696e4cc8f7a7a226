"""Measure what a defended round costs by its size: ``python -m benchmarks.scale``.

    python -m benchmarks.scale [--out DIR] [--spill DIR] [--quick]

Every size in a process of its own. Needs 8 GB of disk where updates are spilled to and 4 GB of
memory. Writes ``results/benchmarks/scale.md`` and ``scale.json``.
"""

import argparse
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from pathlib import Path
from time import perf_counter

from benchmarks.defense_cost.__main__ import environment
from benchmarks.defense_cost.scene import FULL, LENET
from benchmarks.measure import others_share
from benchmarks.scale.fit import Cost, Formulas
from benchmarks.scale.report import days, markdown
from datadefense.core.storage import write_text

ALL = ("fedavg", "median", "krum", "datadefense")


@dataclass(frozen=True, slots=True)
class Size:
    """A round to measure: its size, where its updates are, and with which defenses."""

    model: str
    clients: int
    examples: int
    in_file: bool = False
    defenses: tuple[str, ...] = ALL


TARGET = tuple(Size(FULL, 200, 100, True, (name,)) for name in ALL)
"""The round of 7.4 GB, a process for each defense."""
SIZES = (
    *TARGET,
    *(Size(LENET, clients, 100) for clients in (10, 100, 1000)),
    *(Size(LENET, 100, examples, False, ("datadefense",)) for examples in (20, 500)),
    *(Size(FULL, clients, 100) for clients in (10, 50)),
    Size(FULL, 10, 500, False, ("datadefense",)),
    *(Size(LENET, 1000, 100, True, (name,)) for name in ALL),
    *(Size(FULL, 50, 100, True, (name,)) for name in ALL),
)
QUICK = (
    Size(LENET, 10, 20),
    Size(FULL, 4, 10),
    *(Size(LENET, 10, 20, True, (name,)) for name in ALL),
    *(Size(FULL, 4, 10, True, (name,)) for name in ALL),
)


def measure(size: Size, folder: Path) -> Iterator[Cost]:
    """Run one size in a process of its own."""
    arguments = (size.model, size.clients, size.examples, ",".join(size.defenses))
    command = [sys.executable, "-m", "benchmarks.scale.child", *map(str, arguments)]
    command.append(str(folder) if size.in_file else "")
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    for line in done.stdout.splitlines():
        sys.stderr.write(line + "\n")
        yield Cost(**json.loads(line))


def _without_children(share: float | None, seconds: float) -> float | None:
    """Return what is left of others' share of the cores without our own child processes."""
    if share is None:
        return None
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    own = (used.ru_utime + used.ru_stime) / (seconds * (os.cpu_count() or 1))
    return max(0.0, share - own)


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.scale", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--spill", type=Path, default=Path(), help="folder on a disk")
    parser.add_argument("--quick", action="store_true", help="small sizes only")
    options = parser.parse_args()
    watch, begun = others_share(), perf_counter()
    sizes = QUICK if options.quick else SIZES
    costs = [cost for size in sizes for cost in measure(size, options.spill)]
    share = _without_children(watch(), perf_counter() - begun)
    described = environment() | {"threads": 1}
    formulas = Formulas(costs)
    record = {
        "environment": described,
        "others_share": share,
        "costs": [asdict(cost) for cost in costs],
        "formulas": [asdict(formula) for formula in formulas.all()],
        "days": [asdict(day) for day in days(formulas)],
    }
    page = markdown(described, share, costs, formulas)
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "scale.json", json.dumps(record, indent=1) + "\n")
    write_text(options.out / "scale.md", page)
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
