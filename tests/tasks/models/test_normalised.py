import torch
from torch import nn

from datadefense import Layout
from datadefense.tasks.models.normalised import Normalised


def test_pixels_are_normalised_by_channel():
    model = Normalised(nn.Flatten(), (0.5, 0.1), (0.25, 0.2))
    pixels = torch.tensor([[[[0, 255]], [[51, 102]]]], dtype=torch.uint8)
    expected = [(0 - 0.5) / 0.25, (1 - 0.5) / 0.25, (0.2 - 0.1) / 0.2, (0.4 - 0.1) / 0.2]
    assert torch.allclose(model(pixels), torch.tensor([expected]), atol=1e-6)


def test_it_has_nothing_of_its_own_to_send():
    model = Normalised(nn.Linear(2, 2), (0.5,), (0.5,))
    assert [slot.name for slot in Layout.of_module(model).slots] == ["body.weight", "body.bias"]
