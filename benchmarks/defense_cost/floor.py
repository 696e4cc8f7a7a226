"""The floor of a call: its bare operations, every model loaded and every input prepared before."""

from collections.abc import Callable

import torch
from torch.nn.functional import cross_entropy, one_hot

from benchmarks.defense_cost.scene import CLASSES, Scene
from datadefense.core.compute import channels_last, is_narrow
from datadefense.core.rng import generator
from datadefense.defenses import DataDefense
from datadefense.defenses.datadefense.client_losses import AT_ONCE
from datadefense.defenses.datadefense.detector import draw_psi


def floor(scene: Scene) -> Callable[[], None]:
    """Return the floor of a scene's call.

    A forward pass over D_d of each client's model, at once or in parts, as is fastest (of these
    models, only the full VGG-9 gains by parts); forward and backward at the new one;
    three passes over the matrix of updates; and the forward and backward passes of the detector's
    steps, without an optimiser. The released model's pass is the new one's of the round before.
    """
    round, owned = scene.round, scene.owned
    inputs, labels = owned.examples.inputs, owned.examples.labels
    start = scene.start
    modules = [scene.loaded(params) for params in (*(start + round.updates), start)]
    narrow = is_narrow(scene.module)
    if narrow:
        inputs = channels_last(inputs)
        for module in modules:
            module.to(memory_format=torch.channels_last)  # type: ignore[call-overload]
    *others, new = modules
    parameters, parts = list(new.parameters()), [inputs] if narrow else torch.split(inputs, AT_ONCE)
    weights = torch.full((scene.clients,), 1 / scene.clients)
    psi = draw_psi(owned.features.shape[1], CLASSES, generator(0, "psi"), 256)
    leaves = [weight.requires_grad_() for weight in psi]
    truth, margins = one_hot(labels, CLASSES).float(), torch.ones(len(owned))

    def run() -> None:
        with torch.no_grad():
            for module in others:
                for part in parts:
                    module(part)
        gradients = torch.autograd.grad(cross_entropy(new(inputs), labels), parameters)
        slope = torch.cat([gradient.reshape(-1) for gradient in gradients])
        torch.linalg.vector_norm(round.updates, dim=1)
        torch.addmv(start, round.updates.T, weights)
        torch.mv(round.updates, slope)
        for _ in range(DataDefense().psi_steps):
            y_hat = (owned.features @ psi.W1.T).relu() @ psi.W2.T
            g_2 = (torch.cat([y_hat.softmax(1), truth], 1) @ psi.W3.T).relu() @ psi.W4.T
            low, high = g_2.aminmax()
            gamma = (g_2.squeeze(1) - low) / (high - low)
            torch.autograd.grad((gamma * margins).mean() + cross_entropy(y_hat, labels), leaves)

    return run
