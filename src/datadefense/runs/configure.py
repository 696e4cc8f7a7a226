"""Configure: an experiment from a task, a scale and ``part.key=value`` texts."""

import dataclasses
from collections.abc import Mapping
from typing import Any

from datadefense.core.settings import SettingsError, check_choice, check_float, parse, suggest
from datadefense.runs.config import NONE, ORDER, PLAIN, PLUGINS, Experiment, build_part
from datadefense.schedules.fixed_pool import FixedPool

NAMES = {"attack": "pgd-replacement", "schedule": "fixed-frequency", "defense": "fedavg"}
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
    classes: dict[str, type[Any]] = dict(PLAIN)
    for part, name in chosen.items():
        if not (part == "attack" and name == NONE):
            classes[part] = PLUGINS[part].find(name)
    presets = classes["task"].presets
    check_choice("scale", scale, presets)
    parts = {part: _preset(cls, presets[scale].get(part, {})) for part, cls in classes.items()}
    if share is not None:
        parts["schedule"]["share"] = share
    for key, text in left.items():
        part, name = _place(key, classes, chosen)
        parts[part][name] = text
    built: dict[str, Any] = {
        part: build_part(classes[part], parts[part], part) for part in ORDER if part in classes
    }
    return Experiment(**built, seed=_whole(seed), scale=scale)  # type: ignore[arg-type]


def change(experiment: Experiment, changes: Mapping[str, str]) -> Experiment:
    """Return an experiment with some settings changed; the plug-ins stay what they are."""
    left = dict(changes)
    seed = _whole(left.pop("seed", str(experiment.seed)))
    classes: dict[str, type[Any]] = {
        part: type(value) for part in ORDER if (value := getattr(experiment, part)) is not None
    }
    chosen = {part: experiment.name_of(part) for part in PLUGINS}
    if named := [part for part in (*PLUGINS, "malicious") if part in left]:
        raise SettingsError(
            f"{named[0]} is in the configuration file: change it there, or give --task"
        )
    values: dict[str, dict[str, str]] = {}
    for key, text in left.items():
        part, name = _place(key, classes, chosen)
        values.setdefault(part, {})[name] = text
    changed = {
        part: dataclasses.replace(getattr(experiment, part), **parse(classes[part], given))
        for part, given in values.items()
    }
    return dataclasses.replace(experiment, seed=seed, **changed)


def _choose_pool(share: str, chosen: dict[str, str], changes: Mapping[str, str]) -> None:
    """Choose the schedule that a share of malicious clients stands for."""
    if "schedule" in changes or "schedule.share" in changes:
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


def _settings(cls: type[Any]) -> list[str]:
    return (
        [f.name for f in dataclasses.fields(cls) if f.init] if dataclasses.is_dataclass(cls) else []
    )


def _preset(cls: type[Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Return what a task presets of the settings that a part has."""
    names = _settings(cls)
    if cls in PLAIN.values() and (unknown := [name for name in values if name not in names]):
        raise SettingsError(
            f"the task presets {cls.__name__} {unknown[0]!r}{suggest(unknown[0], names)}"
        )
    return {name: value for name, value in values.items() if name in names}


def _place(
    key: str, classes: Mapping[str, type[Any]], chosen: Mapping[str, str]
) -> tuple[str, str]:
    """Return the part and the setting that a key names."""
    part, dot, name = key.partition(".")
    if dot and part in ORDER:
        if part not in classes:
            raise SettingsError(f"{key} does not apply: nobody attacks")
        if name not in (names := _settings(classes[part])):
            words = f"{part} {chosen[part]}" if part in chosen else part
            raise SettingsError(f"{words} has no setting {name!r}{suggest(name, names)}")
        return part, name
    having = [part for part, cls in classes.items() if key in _settings(cls)]
    if len(having) == 1:
        return having[0], key
    if having:
        ways = " or ".join(f"{part}.{key}" for part in having)
        raise SettingsError(f"{key!r} is a setting of several parts: say {ways}")
    every = [f"{part}.{name}" for part, cls in classes.items() for name in _settings(cls)]
    raise SettingsError(f"there is no setting {key!r}{_nearest(key, every)}")


def _nearest(key: str, names: list[str]) -> str:
    """Return a suggestion, by the whole name or by its last part."""
    text = key.replace("_", ".", 1)
    if text in names:
        return f", did you mean {text!r}?"
    short = {name.partition(".")[2]: name for name in names}
    said = suggest(key, short)
    for last, whole in short.items():
        if said == f", did you mean {last!r}?":
            return f", did you mean {whole!r}?"
    return "; see: datadefense list settings"
