"""LeNet: two 5x5 convolutions and two dense layers, 431,080 parameters, for 28x28 digits."""

from torch import nn


def lenet(classes: int = 10) -> nn.Sequential:
    """Return conv20-pool-conv50-pool-fc500-fc, freshly initialised."""
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Conv2d(20, 50, 5),
        nn.ReLU(),
        nn.MaxPool2d(2),
        nn.Flatten(),
        nn.Linear(800, 500),
        nn.ReLU(),
        nn.Linear(500, classes),
    )
