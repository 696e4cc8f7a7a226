"""Inputs of a defense set: as a folder keeps them, and as a setup's model takes them.

The digits of digits-edge are normalised in advance; other models take pixels or tokens as they are.
"""

from pathlib import Path

import torch
from torch import Tensor

from datadefense.data.digits import DEVIATION, MEAN
from datadefense.data.errors import DataError
from datadefense.defense_sets.folder import DefenseSetSource
from datadefense.runs.config import Experiment
from datadefense.tasks.base import TaskData


def as_kept(inputs: Tensor) -> Tensor:
    """Return inputs as a folder keeps them: the digits of digits-edge as pixels again."""
    if not inputs.is_floating_point():
        return inputs
    return ((inputs * DEVIATION + MEAN) * 255).round().clamp(0, 255).to(torch.uint8)


def to_model_inputs(
    source: DefenseSetSource,
    folder: Path,
    experiment: Experiment,
    material: TaskData,
) -> Tensor:
    """Return a set's inputs as the model takes them, or raise if it cannot take them."""
    given, like, name = source.inputs, material.test.inputs, experiment.setup
    if isinstance(given, tuple) and material.vocabulary is not None:
        given = material.vocabulary.encode(given, experiment.length)
    if isinstance(given, tuple) or given.shape[1:] != like.shape[1:]:
        found = "texts" if isinstance(given, tuple) else f"inputs {list(given.shape[1:])}"
        raise DataError(f"{folder} holds {found}, {name} takes inputs {list(like.shape[1:])}")
    if like.ndim == 2:
        words = next(material.module.parameters()).shape[0]
        odd = ((given < 0) | (given >= words)).any(1).nonzero().flatten().tolist()
        if odd:
            raise DataError(
                f"{folder}: tokens must be in 0..{words - 1}, those of {source.ids[odd[0]]!r} "
                "are not"
            )
    return as_pixels_taken(given, like)


def as_pixels_taken(kept: Tensor, like: Tensor) -> Tensor:
    """Return inputs that a folder keeps in the form of those that the model takes."""
    return (kept / 255 - MEAN) / DEVIATION if like.is_floating_point() else kept
