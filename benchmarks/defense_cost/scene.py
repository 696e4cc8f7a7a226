"""A scene to time: a model, a defense set of made-up examples, a round of small random updates."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property, partial

import torch
from torch import Tensor, nn

from datadefense.core.defense_set import DefenseSet
from datadefense.core.examples import Examples
from datadefense.core.features import penultimate
from datadefense.core.predictor import Layout, predictor
from datadefense.core.rng import generator
from datadefense.core.round import Round
from datadefense.core.server import Server
from datadefense.defenses import create
from datadefense.tasks.cifar import CIFAR_DEVIATION, CIFAR_MEAN
from datadefense.tasks.models.lenet import lenet
from datadefense.tasks.models.normalised import Normalised
from datadefense.tasks.models.vgg9 import vgg9

CLASSES = 10
PART = 5
"""One example in so many is known to be clean, and one poisoned."""


def images(count: int) -> Examples:
    """Draw raw images of 32x32 pixels, as the experiments hold them."""
    draw = generator(0, "images", count)
    pixels = torch.randint(256, (count, 3, 32, 32), generator=draw, dtype=torch.uint8)
    return Examples(pixels, torch.randint(CLASSES, (count,), generator=draw))


def digits(count: int) -> Examples:
    """Draw digits of 28x28."""
    draw = generator(0, "digits", count)
    pixels = torch.randn(count, 1, 28, 28, generator=draw)
    return Examples(pixels, torch.randint(CLASSES, (count,), generator=draw))


def vgg9_on_pixels(width: float) -> nn.Module:
    """Return the model of the CIFAR experiments."""
    return Normalised(vgg9(CLASSES, width), CIFAR_MEAN, CIFAR_DEVIATION)


LENET, NARROW, FULL = "LeNet", "VGG-9, quarter width", "VGG-9"
MODELS: Mapping[str, tuple[Callable[[], nn.Module], Callable[[int], Examples]]] = {
    LENET: (lenet, digits),
    NARROW: (partial(vgg9_on_pixels, 0.25), images),
    FULL: (partial(vgg9_on_pixels, 1.0), images),
}


@dataclass(frozen=True)
class Scene:
    """A round of ``clients`` and a defense set of ``examples``; what is costly is made once."""

    model: str
    clients: int
    examples: int

    @cached_property
    def module(self) -> nn.Module:
        """The model, the same in every scene."""
        torch.manual_seed(0)
        return MODELS[self.model][0]()

    @cached_property
    def layout(self) -> Layout:
        """Of the model."""
        return Layout.of_module(self.module)

    @cached_property
    def start(self) -> Tensor:
        """The released model."""
        return self.layout.flatten(self.module.state_dict())

    @cached_property
    def owned(self) -> DefenseSet:
        """The defense set D_d: a fifth known to be clean, a fifth poisoned.

        Labels are what the model says, but of the poisoned part one label that it rarely says.
        """
        drawn = MODELS[self.model][1](self.examples)
        with torch.no_grad():
            logits = predictor(self.module, self.layout)(self.start, drawn.inputs)
        labels, place = logits.argmax(1), torch.arange(self.examples)
        labels[place % PART == 1] = int(torch.bincount(labels, minlength=CLASSES).argmin())
        examples = Examples(drawn.inputs, labels)
        return DefenseSet(examples, place % PART == 0, penultimate(self.module, examples.inputs))

    @cached_property
    def round(self) -> Round:
        """All clients hardly moved, so all of them count."""
        draw = generator(0, "updates")
        return Round(
            index=1,
            global_params=self.start,
            updates=torch.randn(self.clients, self.layout.dim, generator=draw).mul_(1e-3),
            num_examples=torch.full((self.clients,), 250),
            client_ids=tuple(range(self.clients)),
        )

    def call(self, name: str = "datadefense") -> Callable[[], None]:
        """Return one call of a defense, from the state before the first round."""
        defense = create(name)
        server = Server(predictor(self.module, self.layout), defense_set=self.owned)
        state = defense.init(server, self.start)

        def run() -> None:
            report = defense.aggregate(state, self.round, server).report
            if odd := {"restarted", "fallback", "weakened"} & report.keys():
                raise RuntimeError(f"{self}: not an ordinary round, {odd}")

        return run

    def loaded(self, params: Tensor) -> nn.Module:
        """Return a plain module with these parameters, in evaluation mode."""
        module = copy.deepcopy(self.module).eval()
        module.load_state_dict(self.layout.unflatten(params))
        return module
