"""Presets: what other parts of a configuration have where a task says what suits it."""

from collections.abc import Collection, Mapping, Sequence
from typing import Any, cast

from datadefense.core.settings import SettingsError, check_choice, suggest
from datadefense.runs.config import PLAIN, PLUGINS, build_plugin
from datadefense.runs.parts import SHAPE_THE_TASKS_OWN_SET
from datadefense.tasks.base import Preset, Scale, Task


def presets_of_task(name: str, scale: str, given: Mapping[str, Any]) -> Preset:
    """Return what a task presets at a scale once its own settings are those that are given.

    What it presets for itself is of its class; what suits the other parts may depend on the
    settings, as the server's examples depend on how many the task deals.
    """
    of_class: Mapping[str, Preset] = PLUGINS["task"].find(name).presets
    check_choice("scale", scale, of_class)
    own = of_class[scale].get("task", {})
    task: Task = build_plugin("task", name, {**own, **given})
    return {**task.own_presets()[cast(Scale, scale)], "task": own}


def preset_of(
    part: str, names: Sequence[str], values: Mapping[str, Any], given: Collection[str]
) -> dict[str, Any]:
    """Return what a task presets of the settings that a part has.

    What it presets for an attack or a schedule is for those that have the setting; of any other
    part it must be a setting. Where the server is given a folder, its content counts, and nothing
    that shapes a set of the task's own examples is preset.

    Args:
        part: of the configuration.
        names: the settings that it has.
        values: what the task presets.
        given: the settings that the user has set.
    """
    fixed = part in PLAIN or part == "task"
    if fixed and (unknown := [name for name in values if name not in names]):
        raise SettingsError(
            f"the task presets {part}.{unknown[0]}, which is no setting{suggest(unknown[0], names)}"
        )
    idle = SHAPE_THE_TASKS_OWN_SET if part == "server" and "folder" in given else ()
    return {name: value for name, value in values.items() if name in names and name not in idle}
