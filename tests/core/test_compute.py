import copy

import pytest
import torch
from torch import nn

from datadefense import Layout, predictor
from datadefense.core.compute import WIDE, Compute, channels_last, is_narrow


def net(width):
    torch.manual_seed(0)
    return nn.Sequential(nn.Conv2d(3, width, 3), nn.ReLU(), nn.Flatten(), nn.Linear(16 * width, 3))


@pytest.mark.parametrize(
    ("width", "expected"), [(4, "channels_last"), (WIDE - 1, "channels_last"), (WIDE, "contiguous")]
)
def test_usual_is_float32_and_channels_last_for_narrow_nets(width, expected):
    assert Compute.usual(net(width)) == Compute("float32", expected)


def test_a_net_without_convolutions_is_not_narrow():
    assert not is_narrow(nn.Linear(2, 2))


def test_only_images_are_arranged():
    images, rows = torch.randn(2, 1, 4, 4), torch.randn(2, 4)
    last = Compute(memory_format="channels_last")
    assert last.arrange(rows) is rows
    assert torch.equal(last.arrange(images), images)
    assert last.arrange(images).stride() == channels_last(images).stride() != images.stride()
    assert Compute().arrange(images) is images


@pytest.mark.parametrize("memory_format", ["contiguous", "channels_last"])
def test_bf16_logits_are_float32_near_the_exact_ones_and_have_a_gradient(memory_format):
    module, images = net(5), torch.randn(7, 3, 6, 6, generator=torch.Generator().manual_seed(1))
    layout = Layout.of_module(module)
    params = layout.flatten(module.state_dict()).requires_grad_()
    exact = predictor(module, layout, Compute(memory_format=memory_format))(params, images)
    rough = predictor(module, layout, Compute("bf16", memory_format))(params, images)
    assert rough.dtype == torch.float32
    assert not torch.equal(rough, exact)
    torch.testing.assert_close(rough, exact, rtol=0.05, atol=0.05)
    (gradient,) = torch.autograd.grad(rough.square().sum(), params)
    (expected,) = torch.autograd.grad(exact.square().sum(), params)
    assert gradient.dtype == torch.float32
    assert float((gradient - expected).norm() / expected.norm()) < 0.05


def test_arranging_a_module_changes_no_value():
    module = net(5)
    before = copy.deepcopy(module.state_dict())
    Compute("bf16", "channels_last").arrange_module(module)
    assert all(torch.equal(module.state_dict()[name], value) for name, value in before.items())
