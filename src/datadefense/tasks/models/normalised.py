"""A model that takes raw pixels: one normalisation for clients, attackers, server and tests."""

import torch
from torch import Tensor, nn


class Normalised(nn.Module):
    """Turn uint8 pixels into (x / 255 - mean) / deviation by channel, then apply the body.

    The constants are no buffers: they are not learned, sent or aggregated.
    """

    def __init__(
        self, body: nn.Module, mean: tuple[float, ...], deviation: tuple[float, ...]
    ) -> None:
        super().__init__()
        self.body = body
        self.mean, self.deviation = mean, deviation

    def forward(self, pixels: Tensor) -> Tensor:
        """Return the body's logits for images [batch, channels, height, width]."""
        shape = (1, len(self.mean), 1, 1)
        scale = torch.tensor([1 / (255 * d) for d in self.deviation], device=pixels.device)
        shift = torch.tensor(
            [-m / d for m, d in zip(self.mean, self.deviation, strict=True)], device=pixels.device
        )
        logits: Tensor = self.body(pixels.to(torch.float32) * scale.view(shape) + shift.view(shape))
        return logits
