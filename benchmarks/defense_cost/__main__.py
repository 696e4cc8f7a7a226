"""Time a call of DataDefense: ``python -m benchmarks.defense_cost``.

    python -m benchmarks.defense_cost [--out DIR] [--quick]

Beside its floor, beside a round of training, by the number of clients and of examples, and beside
the released code. In CPU time with one thread and in turns, so that it can be run on a busy
machine. Writes ``results/benchmarks/defense-cost.md`` and ``defense-cost.json``.
"""

import argparse
import json
import os
import platform
import shlex
import sys
from collections.abc import Callable, Mapping
from dataclasses import asdict, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import torch

from benchmarks.defense_cost.floor import floor
from benchmarks.defense_cost.released import released
from benchmarks.defense_cost.report import Beside, Figures, Size, markdown, targets
from benchmarks.defense_cost.scene import FULL, LENET, NARROW, Scene, images
from benchmarks.measure import others_share
from datadefense.core.local_training import Sgd, Trainer
from datadefense.core.rng import generator
from datadefense.core.storage import write_text

CLIENTS, EXAMPLES, FEW = 10, 500, 100
IMAGES, EPOCHS = 250, 2
"""Of a client in a round of the paper."""


def in_turns(calls: Mapping[Any, tuple[Callable[[], None], int]]) -> dict[Any, list[float]]:
    """Call each as often as it says, in turns, and return the CPU seconds of each time."""
    seconds: dict[Any, list[float]] = {name: [] for name in calls}
    for turn in range(max(repeats for _, repeats in calls.values())):
        for name, (call, repeats) in calls.items():
            if turn < repeats:
                start = process_time()
                call()
                seconds[name].append(process_time() - start)
    return seconds


def beside_floor(model: str, repeats: int) -> Beside:
    """Time a call and its floor."""
    scene = Scene(model, CLIENTS, EXAMPLES)
    found = in_turns({"call": (scene.call(), repeats), "floor": (floor(scene), repeats)})
    return Beside(model, CLIENTS, EXAMPLES, min(found["call"]), min(found["floor"]))


def beside_round(repeats: int) -> tuple[Beside, list[Beside]]:
    """Time calls of the full VGG-9, their floor and training together; return both comparisons.

    Medians of the second: a short call finds a quiet moment more easily than a long one.
    """
    scene, small = Scene(FULL, CLIENTS, EXAMPLES), Scene(FULL, CLIENTS, FEW)
    trainer, examples = Trainer(scene.loaded(scene.start), scene.layout), images(IMAGES)
    update = torch.empty_like(scene.start)

    def client() -> None:
        trainer.load(scene.start)
        trainer.train(Sgd(epochs=EPOCHS), examples, generator(0, "training"))
        trainer.write_update(scene.start, update)

    calls = {"call": scene.call(), "floor": floor(scene), "client": client, "few": small.call()}
    found = in_turns({name: (call, repeats) for name, call in calls.items()})
    training = CLIENTS * median(found["client"])
    return Beside(FULL, CLIENTS, EXAMPLES, min(found["call"]), min(found["floor"])), [
        Beside(FULL, CLIENTS, EXAMPLES, median(found["call"]), training),
        Beside(FULL, CLIENTS, FEW, median(found["few"]), training),
    ]


def by_size(scenes: Mapping[Scene, int]) -> list[Size]:
    """Time calls of several sizes, each as often as it says."""
    found = in_turns({scene: (scene.call(), count) for scene, count in scenes.items()})
    return [Size(scene.clients, scene.examples, min(found[scene])) for scene in scenes]


def beside_learned(model: str, repeats: int) -> Beside:
    """Time a call and one of the learned form."""
    scene = Scene(model, CLIENTS, EXAMPLES)
    calls = {"call": scene.call(), "learned": scene.call("datadefense-learned")}
    found = in_turns({name: (call, repeats) for name, call in calls.items()})
    return Beside(model, CLIENTS, EXAMPLES, min(found["call"]), min(found["learned"]))


def beside_release(repeats: int) -> Beside:
    """Time a call and the release's round."""
    scene = Scene(LENET, CLIENTS, EXAMPLES)
    found = in_turns({"call": (scene.call(), repeats), "release": (released(scene), repeats)})
    return Beside(LENET, CLIENTS, EXAMPLES, min(found["call"]), min(found["release"]))


def measure(quick: bool) -> Figures:
    """Measure everything; if ``quick``, once and without the large cases."""
    watch = others_share()
    floors = [beside_floor(LENET, 1 if quick else 10), beside_floor(NARROW, 1 if quick else 4)]
    rounds: list[Beside] = []
    if not quick:
        full, rounds = beside_round(3)
        floors.append(full)
    figures = Figures(
        floors=floors,
        rounds=rounds,
        by_clients=by_size(
            {
                Scene(LENET, clients, FEW): count
                for clients, count in {10: 10, 100: 3, 1000: 2}.items()
                if not quick or clients < 1000
            }
        ),
        by_examples=by_size(
            {
                Scene(LENET, CLIENTS, examples): count
                for examples, count in {100: 10, 500: 4, 5000: 2}.items()
                if not quick or examples < 5000
            }
        ),
        learned=[
            beside_learned(LENET, 1 if quick else 5),
            beside_learned(NARROW, 1 if quick else 3),
        ],
        release=beside_release(1 if quick else 5),
        others_share=None,
    )
    return replace(figures, others_share=watch())


def environment() -> dict[str, Any]:
    """Describe the machine and the software."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = [line.split(":", 1)[1].strip() for line in lines if line.startswith("model name")]
    return {
        "command": shlex.join(["python", *sys.orig_argv[1:]]),
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "cpu": names[0] if names else platform.processor(),
        "cores": os.cpu_count(),
        "python": platform.python_version(),
        "torch": torch.__version__,
    }


def main() -> None:
    """Measure, write and print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.defense_cost", description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("results/benchmarks"))
    parser.add_argument("--quick", action="store_true", help="each once, without large cases")
    options = parser.parse_args()
    torch.set_num_threads(1)
    figures, described = measure(options.quick), environment()
    record = {
        "environment": described,
        "figures": asdict(figures),
        "targets": [
            {"target": text, "at_most": most, "measured": value, "met": met}
            for text, most, value, met in targets(figures)
        ],
    }
    page = markdown(described, figures)
    options.out.mkdir(parents=True, exist_ok=True)
    write_text(options.out / "defense-cost.json", json.dumps(record, indent=1) + "\n")
    write_text(options.out / "defense-cost.md", page)
    sys.stdout.write(page)


if __name__ == "__main__":
    main()
