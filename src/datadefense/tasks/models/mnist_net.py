"""The network of PyTorch's MNIST example: 1,199,882 parameters, for 28x28 digits.

The paper's LeNet (setup 5). Whole feature maps are dropped after the convolutions, as in the
authors' release and in the example of its time; today's example drops single values. Differs from
both in that it returns logits, not their log-softmax, and in that ReLU follows the pooling: the
same values and gradients to the bit, for a quarter of the work.
"""

from torch import nn

from datadefense.tasks.models.pooling import MaxPool2


def mnist_net(classes: int = 10) -> nn.Sequential:
    """Return conv32-conv64-pool-fc128-fc, freshly initialised."""
    return nn.Sequential(
        nn.Conv2d(1, 32, 3),
        nn.ReLU(inplace=True),
        nn.Conv2d(32, 64, 3),
        MaxPool2(),
        nn.ReLU(inplace=True),
        nn.Dropout2d(0.25),
        nn.Flatten(),
        nn.Linear(9216, 128),
        nn.ReLU(inplace=True),
        nn.Dropout(0.5),
        nn.Linear(128, classes),
    )
