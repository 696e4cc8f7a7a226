"""A user's defense set in a run: a folder, identified by its content and checked before use.

The content is a part of the experiment, as a digest: a run that is resumed has the set that it
began with, or says that it has not.
"""

import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from datadefense.core.defense_set import DefenseSet
from datadefense.data.errors import DataError
from datadefense.defense_sets.checks import problems
from datadefense.defense_sets.folder import EXAMPLES, DefenseSetSource, read_defense_folder
from datadefense.defense_sets.inputs import to_model_inputs
from datadefense.tasks.base import TaskData

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class FolderSet:
    """A folder's examples, with inputs as the model takes them."""

    source: DefenseSetSource
    inputs: Tensor

    def defense_set(self, encode: Callable[[Tensor], Tensor]) -> DefenseSet:
        """Return the set that the server holds; ``encode`` where the folder has no features."""
        return self.source.defense_set(self.inputs, encode)


def digest(source: DefenseSetSource) -> str:
    """Return a short hash of all that a run may depend on: everything but the notes."""
    tensors = [source.labels, source.known_clean]
    tensors += [tensor for tensor in (source.inputs, source.features) if isinstance(tensor, Tensor)]
    texts = source.inputs if isinstance(source.inputs, tuple) else ()
    facts = [
        source.ids,
        source.provenance,
        texts,
        [(str(tensor.dtype), list(tensor.shape)) for tensor in tensors],
    ]
    hashed = hashlib.sha256(json.dumps(facts).encode())
    for tensor in tensors:
        hashed.update(tensor.contiguous().numpy().tobytes())
    return hashed.hexdigest()[:16]


def folder_set(folder: Path, digest: str | None, data: TaskData, task: str, seed: int) -> FolderSet:
    """Return the defense set of a folder, with inputs as the task's model takes them.

    What ``datadefense defense-set check`` calls an error is one here, and its warnings are logged.

    Args:
        folder: where it is.
        digest: of its content when the run began; None: it begins now.
        data: the task's.
        task: the task's name, for messages.
        seed: by which the data were dealt, for messages.
    """
    source = read_pinned(folder, digest)
    inputs = to_model_inputs(source, folder, data, task)
    errors, warnings = problems(source, inputs, data, task)
    if errors:
        more = f", and {len(errors) - 1} more: see datadefense defense-set check"
        raise DataError(
            f"{folder} cannot be used with {task} at seed {seed}: "
            f"{errors[0]}{more if errors[1:] else ''}"
        )
    for doubt in warnings:
        logger.warning("%s: %s", folder, doubt)
    return FolderSet(source, inputs)


def read_pinned(folder: Path, wanted: str | None) -> DefenseSetSource:
    """Read a folder, which must have the content that it had when the run began."""
    if wanted is not None and not (folder / EXAMPLES).exists():
        raise DataError(
            f"{folder}, the defense set of this run, is gone: put it back, or write where it is "
            "now into config.toml (folder in [server])"
        )
    source = read_defense_folder(folder)
    found = digest(source)
    if wanted not in (None, found):
        raise DataError(
            f"{folder} has changed since the run began (digest {found}, was {wanted}): undo that, "
            "or begin another run with it"
        )
    return source
