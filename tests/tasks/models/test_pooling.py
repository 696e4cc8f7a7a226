import pytest
import torch
from torch import nn

from datadefense.core.rng import generator
from datadefense.tasks.models.pooling import MaxPool2


@pytest.mark.parametrize("shape", [(3, 4, 8, 8), (2, 1, 7, 5), (1, 3, 2, 3), (4, 6, 6)])
@pytest.mark.parametrize("last", [False, True])
def test_to_the_bit_with_and_without_gradients(shape, last):
    images = torch.randn(shape, generator=generator(0))
    images[..., 0, 1] = torch.nan
    images[..., 1, 0] = torch.inf
    if last and images.ndim == 4:
        images = images.to(memory_format=torch.channels_last)
    expected = nn.MaxPool2d(2)(images)
    with torch.no_grad():
        found = MaxPool2()(images)
    assert torch.equal(found.nan_to_num(7, 8, 9), expected.nan_to_num(7, 8, 9))
    assert torch.equal(found.isnan(), expected.isnan())
    assert torch.equal(MaxPool2()(images).nan_to_num(7), expected.nan_to_num(7))


def test_gradients_are_pytorchs():
    images = torch.randn(2, 3, 6, 6, generator=generator(1), requires_grad=True)
    slopes = [
        torch.autograd.grad(pool(images).square().sum(), images)[0]
        for pool in (MaxPool2(), nn.MaxPool2d(2))
    ]
    assert torch.equal(*slopes)
