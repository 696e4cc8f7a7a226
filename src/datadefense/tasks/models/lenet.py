"""LeNet: two 5x5 convolutions and two dense layers, 431,080 parameters, for 28x28 digits."""

from torch import nn

from datadefense.tasks.models.pooling import MaxPool2


def lenet(classes: int = 10) -> nn.Sequential:
    """Return conv20-pool-conv50-pool-fc500-fc, freshly initialised.

    ReLU comes after the pooling: the same values and gradients to the bit, for a quarter of the
    work.
    """
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        MaxPool2(),
        nn.ReLU(inplace=True),
        nn.Conv2d(20, 50, 5),
        MaxPool2(),
        nn.ReLU(inplace=True),
        nn.Flatten(),
        nn.Linear(800, 500),
        nn.ReLU(inplace=True),
        nn.Linear(500, classes),
    )
