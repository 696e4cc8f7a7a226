"""Code of the user's own: a digest of the source of each ``module:Class`` that a run goes by.

A run keeps names, and a name is looked up anew when the run is resumed. What it finds there may
have been edited: its rounds would be of two rules, and nothing would show it.
"""

import hashlib
import logging
import sys
from pathlib import Path

from datadefense.core.json_file import read_json, to_json
from datadefense.core.round_files import FileError
from datadefense.core.storage import write_text
from datadefense.runs.config import PLUGINS, Experiment
from datadefense.runs.files import CODE

logger = logging.getLogger(__name__)


def digests(experiment: Experiment) -> dict[str, str]:
    """Return a digest of the file that each plug-in of the user's own comes from, by its name."""
    names = [name for part in PLUGINS for name in experiment.name_of(part).split("+")]
    found: dict[str, str] = {}
    for name in names:
        module, colon, _ = name.partition(":")
        source = getattr(sys.modules.get(module), "__file__", None) if colon else None
        if source is not None:
            found[name] = hashlib.sha256(Path(source).read_bytes()).hexdigest()[:16]
    return found


def write_digests(folder: Path, experiment: Experiment) -> None:
    """Keep in a run's folder what its own code is; nothing where it has none."""
    if found := digests(experiment):
        write_text(folder / CODE, to_json(found, indent=2) + "\n")


def warn_of_changes(folder: Path, experiment: Experiment) -> None:
    """Log a warning for each plug-in whose code is not what it was when the run began.

    Of folders that do not say what it was, as older ones, nothing is said.
    """
    if not (folder / CODE).is_file():
        return
    try:
        stored = read_json(folder / CODE, dict)
    except FileError as error:
        logger.warning("%s; whether code of your own has changed is not known", error)
        return
    for name, found in digests(experiment).items():
        if stored.get(name, found) != found:
            logger.warning(
                "the code of %s has changed since the run began: rounds before and after differ",
                name,
            )
