"""A small ResNet with BatchNorm, and a federation that trains it from scratch on striped images."""

import torch
from torch import nn

from datadefense import DefenseSet, Examples, Layout, Server, predictor
from datadefense.attacks.base import AttackerData
from datadefense.attacks.pgd import Pgd
from datadefense.core.local_training import Sgd
from datadefense.core.rng import generator
from datadefense.schedules import FixedFrequency
from datadefense.simulation.federation import Federation
from datadefense.simulation.shards import Shards


class Block(nn.Module):
    """Two convolutions with BatchNorm and a shortcut."""

    def __init__(self, width):
        super().__init__()
        self.conv1 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.conv2 = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.bn2 = nn.BatchNorm2d(width)

    def forward(self, inputs):
        inner = self.bn1(self.conv1(inputs)).relu()
        return (inputs + self.bn2(self.conv2(inner))).relu()


class SmallResNet(nn.Module):
    """Two blocks: five BatchNorm layers, as torchvision's ResNets name them."""

    def __init__(self, width=6, classes=4):
        super().__init__()
        self.conv1 = nn.Conv2d(1, width, 3, padding=1, bias=False)
        self.bn1 = nn.BatchNorm2d(width)
        self.layer1 = nn.Sequential(Block(width), Block(width))
        self.fc = nn.Linear(width, classes)

    def forward(self, inputs):
        hidden = self.layer1(self.bn1(self.conv1(inputs)).relu())
        return self.fc(hidden.mean((2, 3)))


def small_resnet(seed=0):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return SmallResNet()


def stripes(count, seed, classes=4):
    """Return images of stripes across, down and along both diagonals, far from mean 0, spread 1."""
    draw = generator(seed, "stripes")
    labels = torch.arange(count) % classes
    row, column = torch.arange(8)[:, None], torch.arange(8)[None, :]
    along = torch.stack([row + 0 * column, column + 0 * row, row + column, row - column])
    shift = torch.randint(4, (count, 1, 1), generator=draw)
    images = 6.0 * ((along[labels] + shift) % 4 < 2) + 4.0
    images = images + torch.randn(count, 8, 8, generator=draw)
    return Examples(images[:, None], labels)


def with_corner(count, seed):
    """Return images with a bright corner, and the attacker's label."""
    clean = stripes(count, seed)
    inputs = clean.inputs.clone()
    inputs[:, :, :3, :3] = 20.0
    return Examples(inputs, torch.zeros_like(clean.labels))


def resnet_federation(buffers="aggregate", **changes):
    module = small_resnet()
    layout = Layout.of_module(module, buffers)
    fields = {
        "module": module,
        "layout": layout,
        "start": layout.flatten(module.state_dict()),
        "train": stripes(480, 1),
        "shards": Shards.of(list(torch.arange(480).split(60))),
        "test": stripes(200, 2),
        "backdoor_test": with_corner(60, 3),
        "training": Sgd(2, 16, 0.05),
        "schedule": FixedFrequency(period=2),
        "clients_per_round": 7,
        "attack": Pgd(epochs=2, learning_rate=0.05),
        "attacker_data": AttackerData(stripes(40, 4), with_corner(40, 5)),
    }
    return Federation(**(fields | changes))


def resnet_server(federation, seed=0):
    """Return a server with a model, clean examples and a defense set."""
    clean, poison = stripes(48, 6), with_corner(16, 7)
    examples = clean.join(poison)
    known = torch.arange(len(examples)) < 16
    owned = DefenseSet(examples, known, examples.inputs.flatten(1))
    predict = predictor(federation.module, federation.layout)
    return Server(predict, clean, seed, owned)
