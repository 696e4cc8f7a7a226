"""What the authors' released code does in a round, written anew.

Every client's losses example by example; the average as a graph that reaches theta and all
clients' parameters; then batches of 32, where both losses of each example are a graph of their own,
with a backward pass for theta and one for the detector. Left out, to its advantage: its data
loader with crops and flips, autograd's anomaly mode (always on there), a GPU's transfers, printing.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from benchmarks.defense_cost.scene import CLASSES, Scene
from datadefense.core.rng import generator
from datadefense.defenses.datadefense.client_losses import split
from datadefense.defenses.datadefense.detector import draw_psi, gamma

BATCH, BETA = 32, 0.2


def released(scene: Scene) -> Callable[[], None]:
    """Return a round of the release with a scene's clients and defense set."""
    round, owned = scene.round, scene.owned
    inputs, labels = owned.examples.inputs, owned.examples.labels
    modules = [scene.loaded(params) for params in scene.start + round.updates]
    template = scene.loaded(scene.start)
    theta = torch.rand(1, 4, generator=generator(0, "theta")).requires_grad_()
    psi = draw_psi(owned.features.shape[1], CLASSES, generator(0, "psi"), 256)
    held = [theta, *(weight.requires_grad_() for weight in psi)]
    held += [parameter for module in modules for parameter in module.parameters()]

    def back(loss: Tensor) -> None:
        loss.backward(retain_graph=True)  # type: ignore[no-untyped-call]
        for tensor in held:
            if tensor.grad is not None:
                tensor.grad.zero_()

    def run() -> None:
        scores = gamma(psi, owned.features, labels)
        marked = split(scores.detach(), BETA)
        order = torch.randperm(len(owned), generator=generator(0, "order"))
        batches = torch.split(order, BATCH)
        columns = [
            torch.tensor(
                [
                    *_mean_losses(module, inputs, labels, marked, batches),
                    _distance(module, scene.start),
                    1 / scene.clients,
                ]
            )
            for module in modules
        ]
        importance = (theta @ torch.stack(columns, 1)).squeeze(0)
        importance = importance / importance.sum()
        average = {name: torch.zeros_like(start) for name, start in template.named_parameters()}
        for weight, module in zip(importance, modules, strict=True):
            for name, trained in module.named_parameters():
                average[name] = average[name] + weight * trained
        for batch in batches:
            outputs = functional_call(template, average, (inputs[batch],))
            loss = value = torch.zeros(1)
            for output, place in zip(outputs, batch, strict=True):
                clean, poison = (-torch.log(p) for p in _shares(output, labels[place]))
                loss = loss + (poison if marked[place] else clean)
                value = value + scores[place] * (poison - clean)
            back(loss)
            back(value)

    return run


def _mean_losses(
    module: nn.Module, inputs: Tensor, labels: Tensor, marked: Tensor, batches: Sequence[Tensor]
) -> list[float]:
    """Return a client's mean losses on D_dc and D_dp."""
    sums, counts = [torch.zeros(1), torch.zeros(1)], [0, 0]
    with torch.no_grad():
        for batch in batches:
            for output, place in zip(module(inputs[batch]), batch, strict=True):
                part = int(marked[place])
                logits, label = output.view(1, -1), labels[place].view(-1)
                sums[part] += cross_entropy(logits, label, reduction="none")
                counts[part] += 1
    return [float(total) / count for total, count in zip(sums, counts, strict=True)]


def _distance(module: nn.Module, start: Tensor) -> float:
    with torch.no_grad():
        return float((torch.cat([p.view(-1) for p in module.parameters()]) - start).norm())


def _shares(output: Tensor, label: Tensor) -> tuple[Tensor, Tensor]:
    """Return the probability of the label and that of all others."""
    powers = (output - output.max()).exp()
    share = powers[label] / powers.sum(0, keepdim=True)
    return share, 1 - share
