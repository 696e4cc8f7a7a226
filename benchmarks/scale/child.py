"""One round in a process of its own, so that its peak of resident memory is its own.

    python -m benchmarks.scale.child MODEL CLIENTS EXAMPLES DEFENSES FOLDER

Takes the updates in through the gate, then aggregates them with each of the defenses (separated by
commas) and writes a line of JSON for each. FOLDER is where the updates are spilled to; empty keeps
them in memory. One thread, and its CPU time beside the clock: on a busy machine the clock says
little.
"""

import hashlib
import json
import sys
from collections.abc import Iterator
from pathlib import Path
from time import perf_counter, process_time
from typing import NamedTuple

import torch
from torch import Tensor

from benchmarks.defense_cost.scene import Scene
from benchmarks.measure import status_bytes
from datadefense.core.defend import defend
from datadefense.core.gate import Admission, Gate, Submission
from datadefense.core.predictor import predictor
from datadefense.core.server import Server
from datadefense.defenses import create
from datadefense.kernels.spill import Spill

QUICK_SECONDS, MOST_CALLS = 1.0, 3
"""A call that is quicker than this is made so often; the least time counts."""
STEP = 1e-3
"""Standard deviation of an update: clients have hardly moved, so DataDefense trusts all of them."""


class Seconds(NamedTuple):
    """On the clock, and of the CPU."""

    clock: float
    cpu: float

    @classmethod
    def now(cls) -> "Seconds":
        """Return both."""
        return cls(perf_counter(), process_time())

    def less(self, other: "Seconds") -> "Seconds":
        """Return the difference of both."""
        return Seconds(self.clock - other.clock, self.cpu - other.cpu)


class Clients:
    """Submissions made one at a time; ``seconds`` is what making them took."""

    def __init__(self, start: Tensor, count: int) -> None:
        self.count = count
        self.seconds = Seconds(0, 0)
        draw = torch.Generator().manual_seed(0)
        self._noise = torch.randn(len(start), generator=draw).mul_(STEP)
        self._start = start

    def __iter__(self) -> Iterator[Submission]:
        for client in range(self.count):
            begun = Seconds.now()
            moved = self._noise.roll(4099 * client).mul_(1 + client / (10 * self.count))
            model = moved.add_(self._start)
            self.seconds = self.seconds.less(begun.less(Seconds.now()))
            yield Submission(client, model, 250)


def take_in(scene: Scene, folder: str) -> tuple[Admission, Seconds]:
    """Return what the gate made of all clients, and the seconds that it took."""
    spill = Spill(Path(folder), 0) if folder else None
    gate = Gate(scene.layout, sends="models", spill=spill)
    clients = Clients(scene.start, scene.clients)
    begun = Seconds.now()
    admission = gate.admit(1, scene.start, clients, expected=scene.clients)
    seconds = Seconds.now().less(begun).less(clients.seconds)
    if admission.round is None or admission.round.num_clients < scene.clients:
        raise RuntimeError(f"{scene}: the gate turned clients away, {admission.rejected[:1]}")
    return admission, seconds


def main() -> None:
    """Measure one round."""
    torch.set_num_threads(1)
    model, clients, examples, names, folder = sys.argv[1:]
    scene = Scene(model, int(clients), int(examples))
    server = Server(predictor(scene.module, scene.layout), defense_set=scene.owned)
    before = status_bytes("VmRSS")
    states = {name: create(name).init(server, scene.start) for name in names.split(",")}
    admission, intake = take_in(scene, folder)
    for place, (name, state) in enumerate(states.items()):
        if place:
            Path("/proc/self/clear_refs").write_text("5")
        calls: list[Seconds] = []
        while not calls or (calls[-1].cpu < QUICK_SECONDS and len(calls) < MOST_CALLS):
            begun = Seconds.now()
            result = defend(create(name), state, admission, scene.start, server)
            calls.append(Seconds.now().less(begun))
        if odd := {"restarted", "fallback", "held"} & result.report.keys():
            raise RuntimeError(f"{scene}, {name}: not an ordinary round, {odd}")
        measured = {
            "model": model,
            "clients": scene.clients,
            "params": scene.layout.dim,
            "examples": scene.examples if name == "datadefense" else 0,
            "defense": name,
            "in_file": bool(folder),
            "bytes_received": scene.clients * scene.layout.dim * 4,
            "intake_clock": intake.clock,
            "intake_cpu": intake.cpu,
            "clock": min(call.clock for call in calls),
            "cpu": min(call.cpu for call in calls),
            "resident_before": before,
            "resident_peak": status_bytes("VmHWM"),
            "result": hashlib.sha256(result.params.numpy().tobytes()).hexdigest()[:16],
        }
        sys.stdout.write(json.dumps(measured) + "\n")


if __name__ == "__main__":
    main()
