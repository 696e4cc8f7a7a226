"""Keys of settings: which part and which setting a key names, and what to say where none does."""

import difflib
from collections.abc import Mapping, Sequence

from datadefense.core.settings import SettingsError, setting_names, suggest
from datadefense.runs.config import ORDER, PLUGINS

OPTIONS = ("task", "scale")
"""Choices that no setting makes: the command line has an option for each."""
WITHOUT_PART = ("attack", "schedule", "defense", "malicious", "seed")
"""Keys that are taken as they are."""
OTHER_WORDS = {
    "defense_clean": "server.clean",
    "defense_folder": "server.folder",
    "drip_slack": "attack.slack",
    "first_attack": "schedule.first",
    "last_attack": "schedule.last",
    "pool": "malicious",
    "server_clean": "server.known_clean",
    "setup": "task",
}
"""Words that a setting had before, where its name today is not near."""


def place(key: str, names: Mapping[str, list[str]], chosen: Mapping[str, str]) -> tuple[str, str]:
    """Return the part and the setting that a key names.

    The setting is named in full: of a composed defense, ``nnm.num_malicious``.

    Args:
        key: ``part.setting``, or only ``setting`` where a single part has it. In a composed defense
            a setting that only one of its parts has needs no name of that part either.
        names: the settings of each part.
        chosen: the name of each plug-in.
    """
    part, dot, name = key.partition(".")
    if dot and part in ORDER:
        if part not in names:
            raise SettingsError(f"{key} does not apply: nobody attacks")
        found = _meant(name, names[part])
        if not found:
            words = f"{part} {chosen[part]}" if part in chosen else part
            hint = _whose(part, name) or suggest(name, names[part])
            raise SettingsError(f"{words} has no setting {name!r}{hint}")
        return part, _only(name, found)
    having = {part: found for part, known in names.items() if (found := _meant(key, known))}
    if len(having) == 1:
        part, found = having.popitem()
        return part, _only(key, found)
    if having:
        ways = " or ".join(f"{part}.{name}" for part, found in having.items() for name in found)
        raise SettingsError(f"{key!r} is a setting of several parts: say {ways}")
    for part, name in chosen.items():
        if others := _whose(part, key):
            if part not in names:
                raise SettingsError(f"{key} does not apply: nobody attacks")
            raise SettingsError(f"{part} {name} has no setting {key!r}{others}")
    every = [*WITHOUT_PART]
    every += [f"{part}.{name}" for part, known in names.items() for name in known]
    raise SettingsError(f"there is no setting {key!r}{_nearest(key, every)}")


def _meant(name: str, names: list[str]) -> list[str]:
    """Return the settings that a name may mean, in full: itself, or those of parts of a defense."""
    if name in names:
        return [name]
    return [known for known in names if "." in known and known.rpartition(".")[2] == name]


def _only(name: str, found: Sequence[str]) -> str:
    """Return the one setting that a name means."""
    if len(found) > 1:
        raise SettingsError(f"{name}: which? {' or '.join(found)}")
    return found[0]


def _whose(part: str, name: str) -> str:
    """Return which other plug-ins of a part have a setting; nothing if none has."""
    if part not in PLUGINS:
        return ""
    found = PLUGINS[part].available().items()
    if having := [other for other, cls in found if name in setting_names(cls)]:
        return f"; those that have it: {', '.join(having)}"
    return ""


def _nearest(key: str, names: Sequence[str]) -> str:
    """Return a suggestion: by another word, by the whole name or by its last part."""
    if key in OPTIONS:
        return f": say --{key}"
    if key == "model":
        return ": the task has its model; --task module:name is one of your own"
    text = OTHER_WORDS.get(key, key.replace("_", ".", 1))
    if key in OTHER_WORDS or text in names:
        return f", did you mean {text!r}?"
    lasts = {name.rpartition(".")[2] for name in names}
    if close := difflib.get_close_matches(key, sorted(lasts), n=1):
        ways = [repr(name) for name in names if name.rpartition(".")[2] == close[0]]
        return f", did you mean {' or '.join(ways)}?"
    return "; see: datadefense list settings"
