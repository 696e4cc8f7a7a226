"""A defense set of one's own in a run: a folder, known by its content, checked before it is used.

The content is a part of the experiment, as a digest: a run that is resumed has the set that it
began with, or says that it has not.
"""

import dataclasses
import hashlib
import json
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from torch import Tensor

from datadefense.core.defense_set import DefenseSet
from datadefense.core.needs import Need
from datadefense.data.errors import DataError
from datadefense.defense_sets.checks import problems
from datadefense.defense_sets.folder import EXAMPLES, DefenseSetSource, read_defense_folder
from datadefense.defense_sets.inputs import to_model_inputs
from datadefense.defenses import create
from datadefense.runs.config import Experiment
from datadefense.tasks.base import TaskData

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, eq=False)
class OwnedSet:
    """A folder's examples, with inputs as the model takes them."""

    source: DefenseSetSource
    inputs: Tensor

    def defense_set(self, encode: Callable[[Tensor], Tensor]) -> DefenseSet:
        """Return the set that the server holds; ``encode`` where the folder has no features."""
        return self.source.defense_set(self.inputs, encode)


def digest(source: DefenseSetSource) -> str:
    """Return a short hash of all that a run may depend on: everything but the notes."""
    tensors = [source.labels, source.known_clean]
    tensors += [one for one in (source.inputs, source.features) if isinstance(one, Tensor)]
    texts = source.inputs if isinstance(source.inputs, tuple) else ()
    facts = [
        source.ids,
        source.provenance,
        texts,
        [(str(one.dtype), list(one.shape)) for one in tensors],
    ]
    hashed = hashlib.sha256(json.dumps(facts).encode())
    for one in tensors:
        hashed.update(one.contiguous().numpy().tobytes())
    return hashed.hexdigest()[:16]


def pinned(experiment: Experiment) -> Experiment:
    """Return the experiment with the digest of its defense set, and the folder's whole path.

    Raises if it has a digest already and the folder has another: it was edited since.
    """
    if experiment.defense_folder is None:
        return experiment
    folder = Path(experiment.defense_folder).absolute()
    found = digest(_read(experiment, folder))
    return dataclasses.replace(experiment, defense_folder=str(folder), defense_digest=found)


def owned_set(experiment: Experiment, material: TaskData) -> OwnedSet | None:
    """Return the experiment's own defense set, or None if it has the setup's.

    What ``datadefense defense-set check`` calls an error is one here, and its warnings are logged.
    """
    if experiment.defense_folder is None:
        return None
    folder = Path(experiment.defense_folder)
    source = _read(experiment, folder)
    inputs = to_model_inputs(source, folder, experiment, material)
    errors, warnings = problems(source, inputs, material, experiment.setup)
    defense = create(experiment.defense, experiment.defense_settings)
    if Need.CLEAN_EXAMPLES in defense.needs and not bool(source.known_clean.any()):
        errors.append(f"{defense.name} needs clean examples, and none is marked as known clean")
    if errors:
        more = f", and {len(errors) - 1} more: see datadefense defense-set check"
        raise DataError(
            f"{folder} cannot be used with {experiment.setup} at seed {experiment.seed}: "
            f"{errors[0]}{more if errors[1:] else ''}"
        )
    for doubt in warnings:
        logger.warning("%s: %s", folder, doubt)
    return OwnedSet(source, inputs)


def _read(experiment: Experiment, folder: Path) -> DefenseSetSource:
    """Read the folder, which must have the experiment's digest if that has one."""
    wanted = experiment.defense_digest
    if wanted is not None and not (folder / EXAMPLES).exists():
        raise DataError(
            f"{folder}, the defense set of this run, is gone: put it back, or write where it is "
            "now into config.toml (defense_folder)"
        )
    source = read_defense_folder(folder)
    found = digest(source)
    if wanted not in (None, found):
        raise DataError(
            f"{folder} has changed since the run began (digest {found}, was {wanted}): undo that, "
            "or begin another run with it"
        )
    return source
