"""Rounds, each in a process of its own, and by how much they raised its resident memory.

``python -m tests.resident_memory CLIENTS FOLDER DEFENSE...`` writes a line of megabytes for each:
of the matrix, and of the peak over what was resident before. FOLDER is where updates are spilled;
with a defense called ``in-memory`` fedavg's round is not.
"""

import gc
import json
import multiprocessing
import sys
from pathlib import Path

import torch

from datadefense import (
    DefenseSet,
    Examples,
    Gate,
    Layout,
    Server,
    Spill,
    Submission,
    create,
    defend,
)
from datadefense.kernels import passes

FEATURES, CLASSES = 100_000, 10
DIM = FEATURES * CLASSES
MOST_RESIDENT = 8_000_000
IN_MEMORY = "in-memory"


def predict(params, inputs):
    return inputs @ params.view(CLASSES, FEATURES).T


def server():
    inputs = torch.randn(20, FEATURES) / FEATURES**0.5
    examples = Examples(inputs, torch.arange(20) % CLASSES)
    owned = DefenseSet(examples, torch.arange(20) < 10, inputs[:, :50])
    return Server(predict, examples, 0, owned)


def submissions(clients):
    base = torch.randn(DIM) * 1e-3
    for client in range(clients):
        yield Submission(client, base.roll(997 * client) * (1 + client / clients), 10)


def status_bytes(field):
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(dict(line.split(":", 1) for line in lines)[field].split()[0])


def main(name, clients, folder):
    torch.set_num_threads(1)
    torch.manual_seed(0)
    passes.MOST_RESIDENT = MOST_RESIDENT
    params = torch.zeros(DIM)
    layout = Layout.of_state_dict({"weight": params.view(CLASSES, FEATURES)})
    gate = Gate(layout, spill=None if name == IN_MEMORY else Spill(Path(folder), 0))
    owner, defense = server(), create("fedavg" if name == IN_MEMORY else name)
    state = defense.init(owner, params)
    gc.collect()
    Path("/proc/self/clear_refs").write_text("5")
    before = status_bytes("VmRSS")
    admission = gate.admit(1, params, submissions(clients), expected=clients)
    result = defend(defense, state, admission, params, owner)
    assert admission.round.num_clients == clients
    assert bool(result.params.isfinite().all())
    matrix = admission.round.updates.nbytes
    peak = status_bytes("VmHWM") - before
    found = {"defense": name, "matrix": matrix / 1e6, "peak": peak / 1e6}
    sys.stdout.write(json.dumps(found) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    fork = multiprocessing.get_context("fork")  # torch is imported once, and nothing else is there
    for each in sys.argv[3:]:
        process = fork.Process(target=main, args=(each, int(sys.argv[1]), sys.argv[2]))
        process.start()
        process.join()
        if process.exitcode:
            sys.exit(process.exitcode)
