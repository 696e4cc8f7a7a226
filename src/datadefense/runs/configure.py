"""Configure: an experiment from a task, a scale and ``part.key=value`` texts."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from datadefense.attacks.pgd import PgdReplacement
from datadefense.core.settings import SettingsError, check_float, setting_names
from datadefense.defenses import FedAvg, create
from datadefense.runs.config import (
    NONE,
    ORDER,
    PLAIN,
    PLUGINS,
    Experiment,
    build_part,
    build_plugin,
    settings_of,
)
from datadefense.runs.presets import preset_of, presets_of_task
from datadefense.runs.setting_keys import place
from datadefense.schedules.fixed_frequency import FixedFrequency
from datadefense.schedules.fixed_pool import FixedPool

NAMES = {
    "attack": PgdReplacement.name,
    "schedule": FixedFrequency.name,
    "defense": FedAvg.name,
}
"""What is taken where nothing is said."""


def configure(task: str, scale: str, changes: Mapping[str, str]) -> Experiment:
    """Return the task's experiment at a scale, with settings changed by texts.

    ``part.key`` sets a setting of a part: ``attack.epochs``, ``federation.rounds``. A bare ``key``
    will do where only one part has it. ``attack``, ``schedule`` and ``defense`` name a plug-in;
    ``malicious`` is the share of all clients that attacks whenever it is drawn: short for the
    schedule ``fixed-pool``. What the task presets for an attack or a schedule counts for the
    settings that the chosen one has. An unknown key is an error with a suggestion.
    """
    left = dict(changes)
    chosen = {"task": task, **{part: left.pop(part, name) for part, name in NAMES.items()}}
    seed = left.pop("seed", "0")
    if (share := left.pop("malicious", None)) is not None:
        _choose_pool(share, chosen, changes)
    unused = ("attack", "schedule") if chosen["attack"] == NONE else ()
    if unused and (said := [key for key in ("malicious", "schedule") if key in changes]):
        raise SettingsError(f"{said[0]} does not apply: nobody attacks")
    names = {part: setting_names(cls) for part, cls in PLAIN.items()}
    for part, name in chosen.items():
        if part == "defense":
            names[part] = list(settings_of(create(name)))
        elif part not in unused:
            names[part] = setting_names(PLUGINS[part].find(name))
    placed = _placed(left, names, chosen)
    presets = presets_of_task(task, scale, placed.get("task", {}))
    parts = {
        part: preset_of(part, known, presets.get(part, {}), placed.get(part, {}))
        for part, known in names.items()
    }
    if share is not None:
        if "share" in placed.get("schedule", {}):
            raise SettingsError("malicious is the schedule's share: give one of them")
        parts["schedule"]["share"] = share
    for part, texts in placed.items():
        parts[part] |= texts
    built: dict[str, Any] = {
        part: build_part(PLAIN[part], values, part)
        if part in PLAIN
        else build_plugin(part, chosen[part], values)
        for part, values in parts.items()
    }
    return Experiment(**built, seed=_whole(seed), scale=scale)  # type: ignore[arg-type]


def change(experiment: Experiment, changes: Mapping[str, str]) -> Experiment:
    """Return an experiment with some settings changed; the plug-ins stay what they are."""
    seed = _whole(changes.get("seed", str(experiment.seed)))
    changed = {
        part: _changed(part, experiment, given)
        for part, given in _changes_by_part(experiment, changes).items()
    }
    return dataclasses.replace(experiment, seed=seed, **changed)


def changes_of_part(
    part: str, experiment: Experiment, changes: Mapping[str, str]
) -> dict[str, str]:
    """Return the texts among the changes that are for settings of a part, by setting."""
    return _changes_by_part(experiment, changes).get(part, {})


def _changes_by_part(
    experiment: Experiment, changes: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    left = {key: text for key, text in changes.items() if key != "seed"}
    if named := [part for part in (*PLUGINS, "malicious") if part in left]:
        raise SettingsError(
            f"{named[0]} is in the configuration file: change it there, or leave out --config"
        )
    names = {
        part: list(settings_of(value))
        for part in ORDER
        if (value := getattr(experiment, part)) is not None
    }
    return _placed(left, names, {part: experiment.name_of(part) for part in PLUGINS})


def _changed(part: str, experiment: Experiment, given: Mapping[str, str]) -> Any:
    settings = {**settings_of(getattr(experiment, part)), **given}
    if part in PLAIN:
        return build_part(PLAIN[part], settings, part)
    return build_plugin(part, experiment.name_of(part), settings)


def _choose_pool(share: str, chosen: dict[str, str], changes: Mapping[str, str]) -> None:
    """Choose the schedule that a share of malicious clients stands for."""
    if "schedule" in changes:
        raise SettingsError("malicious sets the schedule already: give one of them")
    try:
        check_float("malicious", float(share), above=0, maximum=1)
    except ValueError as error:
        if isinstance(error, SettingsError):
            raise
        raise SettingsError(f"malicious must be a number, got {share!r}") from error
    chosen["schedule"] = FixedPool.name


def _whole(text: str) -> int:
    try:
        return int(text)
    except ValueError as error:
        raise SettingsError(f"seed must be an integer, got {text!r}") from error


def _placed(
    changes: Mapping[str, str], names: Mapping[str, list[str]], chosen: Mapping[str, str]
) -> dict[str, dict[str, str]]:
    """Return texts by part and setting; two keys that name the same setting are an error."""
    placed: dict[str, dict[str, str]] = {}
    keys: dict[tuple[str, str], str] = {}
    for key, text in changes.items():
        part, name = place(key, names, chosen)
        if (before := keys.setdefault((part, name), key)) != key:
            raise SettingsError(f"{before} and {key} are the same setting: give one of them")
        placed.setdefault(part, {})[name] = text
    return placed
