"""Checks of a task with a trigger: what is stamped on what, and the quarters of it."""

import torch

from datadefense.core.content import content_keys


def changed(stamped, plain):
    """How many pixels of each image differ."""
    return (stamped != plain).any(1).flatten(1).sum(1)


def check_trigger(data, size):
    """The attacker's poison has the whole trigger, its parts a quarter each, on known images."""
    poison, count = data.attacker.poison, len(data.attacker.poison)
    assert len(data.originals) == 2 * count
    assert set(content_keys(data.originals)) <= set(content_keys(data.warm.inputs))
    pixels = changed(poison.inputs, data.originals[:count])
    assert int(pixels.min()) > 0
    assert int(pixels.max()) <= size**2
    assert len(data.attacker.parts) == 4
    for part in data.attacker.parts:
        assert torch.equal(part.labels, poison.labels)
        pixels = changed(part.inputs, data.originals[count:])
        assert int(pixels.min()) > 0
        assert int(pixels.max()) <= (size // 2) ** 2
    assert set(data.variants) == {"recoloured", "larger", "corner"}
