"""Inputs of a defense set: as a folder keeps them, and as a task's model takes them.

Some tasks scale their pixels in advance; other models take pixels or tokens as they are.
"""

from pathlib import Path

from torch import Tensor

from datadefense.data.errors import DataError
from datadefense.defense_sets.folder import DefenseSetSource
from datadefense.tasks.base import TaskData


def to_model_inputs(
    source: DefenseSetSource,
    folder: Path,
    data: TaskData,
    task: str,
) -> Tensor:
    """Return a set's inputs as the model takes them, or raise if it cannot take them.

    Args:
        source: the set.
        folder: where it is, for messages.
        data: the task's.
        task: the task's name, for messages.
    """
    given, like = source.inputs, data.test.inputs
    if isinstance(given, tuple) and data.vocabulary is not None:
        given = data.vocabulary.encode(given, like.shape[1])
    if isinstance(given, tuple) or given.shape[1:] != like.shape[1:]:
        found = "texts" if isinstance(given, tuple) else f"inputs {list(given.shape[1:])}"
        raise DataError(f"{folder} holds {found}, {task} takes inputs {list(like.shape[1:])}")
    if like.ndim == 2:
        words = next(data.module.parameters()).shape[0]
        odd = ((given < 0) | (given >= words)).any(1).nonzero().flatten().tolist()
        if odd:
            raise DataError(
                f"{folder}: tokens must be in 0..{words - 1}, those of {source.ids[odd[0]]!r} "
                "are not"
            )
    return data.as_input(given)
