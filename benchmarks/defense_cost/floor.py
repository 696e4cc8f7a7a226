"""The floor of a call: its bare operations, every model loaded and every input prepared before."""

from collections.abc import Callable

import torch

from benchmarks.defense_cost.scene import PART, Scene
from datadefense.core.compute import Compute
from datadefense.defenses.datadefense.client_losses import in_parts


def floor(scene: Scene) -> Callable[[], None]:
    """Return the floor of a scene's call.

    A forward pass over the poisoned part of D_d of each client's model, of the old one and of the
    new one, and two passes over the matrix of updates.
    """
    round, inputs, start = scene.round, scene.owned.examples.inputs, scene.start
    compute = Compute.usual(scene.module)
    parts = in_parts(compute.arrange(inputs[torch.arange(len(inputs)) % PART == 1]))
    modules = [
        compute.arrange_module(scene.loaded(params))
        for params in (*(start + round.updates), start, start)
    ]
    weights = torch.full((scene.clients,), 1 / scene.clients)

    def run() -> None:
        with torch.no_grad():
            for module in modules:
                for part in parts:
                    module(part)
        torch.linalg.vector_norm(round.updates, dim=1)
        torch.addmv(start, round.updates.T, weights)

    return run
