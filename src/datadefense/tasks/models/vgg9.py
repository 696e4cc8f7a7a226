"""VGG-9 without BatchNorm: eight 3x3 convolutions and one dense layer, for 32x32 colour images.

The table "VGG-9 architecture" of the paper's appendix, which is that of Wang et al. 2020; with ten
classes 9,225,610 parameters. Parameters have the names of the authors' release
(``features.0.weight`` ... ``classifier.bias``). Differs in three ways: its last layer of features,
an average over 1x1, is the identity and left out; ReLU comes after the pooling, with the same
values and gradients to the bit for a quarter of the work; and convolutions start as He et al. 2015
propose for ReLU, since PyTorch's default makes the signal of a net without norms fade from layer to
layer.
"""

from collections import OrderedDict

from torch import nn

from datadefense.core.settings import check_float, check_int
from datadefense.tasks.models.pooling import MaxPool2

BLOCKS = ((64,), (128,), (256, 256), (512, 512), (512, 512))
"""Output channels of the convolutions between two poolings."""


def vgg9(classes: int = 10, width: float = 1.0) -> nn.Sequential:
    """Return the network, freshly initialised.

    Args:
        classes: number of logits.
        width: factor on all numbers of channels; 0.25 makes 578,410 parameters of 9,225,610.
    """
    check_int("classes", classes, 1)
    check_float("width", width, above=0)
    layers: list[nn.Module] = []
    channels = 3
    for block in BLOCKS:
        for full in block:
            narrowed = max(1, round(full * width))
            convolution = nn.Conv2d(channels, narrowed, kernel_size=3, padding=1)
            nn.init.kaiming_normal_(convolution.weight, nonlinearity="relu")
            nn.init.zeros_(convolution.bias)  # type: ignore[arg-type]
            layers += [convolution, nn.ReLU(inplace=True)]
            channels = narrowed
        layers.insert(-1, MaxPool2())
    return nn.Sequential(
        OrderedDict(
            features=nn.Sequential(*layers),
            flatten=nn.Flatten(),
            classifier=nn.Linear(channels, classes),
        )
    )
