"""Augmentation of a batch at once: random crops of the padded image, and random flips."""

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.nn.functional import pad

PADDING = 4


def crop_and_flip(
    images: UInt8[Tensor, "batch channels height width"], generator: torch.Generator
) -> UInt8[Tensor, "batch channels height width"]:
    """Shift each image by up to 4 pixels each way (black comes in) and mirror half of them."""
    batch, _, height, width = images.shape
    padded = pad(images, (PADDING,) * 4)
    device = images.device
    draws = [
        torch.randint(high, (batch,), generator=generator).to(device)
        for high in (2 * PADDING + 1, 2 * PADDING + 1, 2)
    ]
    rows = draws[0][:, None] + torch.arange(height, device=device)
    columns = torch.arange(width, device=device).expand(batch, width)
    columns = torch.where(draws[2][:, None] == 1, width - 1 - columns, columns) + draws[1][:, None]
    index = torch.arange(batch, device=device)[:, None, None]
    picked = padded.permute(0, 2, 3, 1)[index, rows[:, :, None], columns[:, None, :]]
    return picked.permute(0, 3, 1, 2)
