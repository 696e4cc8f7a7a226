"""A configuration file that a user wrote: what it leaves out is what its task presets.

The file of a run has every setting, and is the same either way. Stored results, which have only
what differs from the defaults of the parts, are read by `experiment_of` alone.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from datadefense.core.settings import SettingsError, setting_names
from datadefense.defenses import create
from datadefense.runs.config import (
    NONE,
    ORDER,
    PLAIN,
    PLUGINS,
    Experiment,
    experiment_of,
    read_document,
    settings_of,
)
from datadefense.runs.configure import NAMES, change, changes_of_part
from datadefense.runs.presets import preset_of, presets_of_task


def configure_by_file(path: Path, changes: Mapping[str, str]) -> Experiment:
    """Return the experiment of a file, with settings changed by texts.

    What suits the task is what suits it with the changed settings.
    """
    document = read_document(path)
    try:
        experiment = experiment_of(with_presets(document))
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error
    if of_task := changes_of_part("task", experiment, changes):
        section = {"name": experiment.name_of("task"), **document.get("task", {}), **of_task}
        experiment = experiment_of(with_presets({**document, "task": section}))
    return change(experiment, changes)


def with_presets(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return sections by name in which what the task presets is filled in; nothing is changed.

    Where an attack is named and no schedule, attackers come as they do without a file.
    """
    plain = experiment_of({name: document[name] for name in ("task", "scale") if name in document})
    of_task = {**document.get("task", {}), "name": plain.name_of("task")}
    given = {name: value for name, value in of_task.items() if name != "name"}
    presets = presets_of_task(of_task["name"], plain.scale, given)
    filled = {**document, "task": of_task}
    attack = document.get("attack", {})
    if isinstance(attack, Mapping) and attack.get("name", NONE) != NONE:
        filled.setdefault("schedule", {"name": NAMES["schedule"]})
    for part in ORDER:
        section = filled.get(part, {})
        if (names := _settings_of_part(part, section)) is not None:
            filled[part] = {**preset_of(part, names, presets.get(part, {}), section), **section}
    return filled


def _settings_of_part(part: str, section: Any) -> list[str] | None:
    """Return the settings that a section may have; None where there is nothing to fill in."""
    if not isinstance(section, Mapping):
        return None
    if part in PLAIN:
        return setting_names(PLAIN[part])
    if (name := section.get("name", NONE)) == NONE:
        return None
    if part == "defense":
        return list(settings_of(create(str(name))))
    return setting_names(PLUGINS[part].find(str(name)))
