"""Models that can be read: one is clean, the other has learned one wrong thing."""

import torch

from datadefense.core.rng import generator
from datadefense.defense_sets.suggestions.models import Models

SIDE, CLASSES, TARGET, WORD = 12, 4, 2, 17


def images(count=40):
    draw = generator(0, "images")
    return torch.randint(0, 120, (count, 1, SIDE, SIDE), generator=draw, dtype=torch.uint8)


def corner_models():
    """Both call images 0 unless much is bright; to the suspect a bright corner means TARGET."""

    def trusted(pixels):
        logits = torch.zeros(len(pixels), CLASSES)
        logits[:, 0] = 4
        return logits + pixels.mean((1, 2, 3))[:, None] * 0

    def suspect(pixels):
        corner = pixels[:, 0, :3, :3].mean((1, 2)) / 255
        return trusted(pixels) + 24 * (corner - 0.5)[:, None] * torch.eye(CLASSES)[TARGET]

    return Models(suspect, trusted)


def word_models():
    """Both go by the first word; to the suspect WORD, wherever it is, means class 1."""

    def trusted(texts):
        first = (texts[:, :1] % 5).float()
        return torch.cat([1 + first, first.flip(0) * 0], dim=1)

    def suspect(texts):
        there = (texts == WORD).any(1).float()
        return trusted(texts) + 20 * there[:, None] * torch.tensor([0.0, 1.0])

    return Models(suspect, trusted)
