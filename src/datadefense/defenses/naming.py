"""Names of defenses: ``krum``, ``module:Class``, ``clip+nnm+multi-krum+fedadam``, and back.

A composed name has pre-aggregators, one defense and post-aggregators, in this order, joined by
"+". Settings of a part are called ``part.setting``; a setting that only one part has needs no
prefix.
"""

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple, cast

from datadefense.core.defense import Defense
from datadefense.core.postaggregator import PostAggregator
from datadefense.core.preaggregator import PreAggregator
from datadefense.core.registry import Registry
from datadefense.core.settings import SettingsError, build, suggest
from datadefense.defenses.pipeline import Part, Pipeline
from datadefense.defenses.registry import REGISTRY
from datadefense.postaggregators import REGISTRY as AFTER
from datadefense.preaggregators import REGISTRY as BEFORE

JOIN = "+"
"""What stands between the parts of a composed name."""
KINDS: tuple[Registry[Any], ...] = (BEFORE, REGISTRY, AFTER)
"""The kinds of parts in their order in a name."""


class _Named(NamedTuple):
    """A part of a name, and the class and kind that it stands for."""

    name: str
    cls: type[Part]
    kind: Registry[Any]


def available() -> dict[str, type[Defense[Any]]]:
    """Return our defenses and, behind them, those of installed packages."""
    return REGISTRY.available()


def create(name: str, settings: Mapping[str, object] | None = None) -> Defense[Any]:
    """Make a defense by name from settings or their texts, as the command line does.

    ``some.module:SomeClass`` names a part of one's own. Settings of parts may also be nested, as
    tables of a TOML file are: ``{"nnm": {"num_malicious": 2}}``.

    >>> create("krum", {"num_malicious": 2})
    Krum(num_malicious=2)
    >>> create("nnm+krum", {"nnm.num_malicious": "2"}).before
    (Nnm(num_malicious=2),)
    """
    if JOIN not in name:
        return _alone(name, settings or {})
    parts = [_named(part, name) for part in name.split(JOIN)]
    _check_order(parts, name)
    divided = _divided(name, parts, dict(_flat(settings or {})))
    made = [(part.kind, build(part.cls, divided[part.name])) for part in parts]
    return Pipeline(
        tuple(cast("PreAggregator[Any]", plugin) for kind, plugin in made if kind is BEFORE),
        next(cast("Defense[Any]", plugin) for kind, plugin in made if kind is REGISTRY),
        tuple(cast("PostAggregator[Any]", plugin) for kind, plugin in made if kind is AFTER),
    )


def name_of(defense: Defense[Any]) -> str:
    """Return the name under which `create` makes such a defense.

    >>> name_of(create("nnm+krum"))
    'nnm+krum'
    """
    if not isinstance(defense, Pipeline):
        return REGISTRY.name_of(defense)
    return JOIN.join(name for name, _ in _names_of(defense))


def settings_of(defense: Defense[Any]) -> dict[str, Any]:
    """Return all settings by name, as `create` takes them: with `name_of`, all there is to store.

    >>> settings_of(create("nnm+krum"))
    {'nnm.num_malicious': 1, 'krum.num_malicious': 1}
    """
    return {
        f"{prefix}{key}": value
        for prefix, part in named_parts(defense)
        for key, value in _values(part).items()
    }


def named_parts(defense: Defense[Any]) -> list[tuple[str, Part]]:
    """Return each part of a defense with what stands before its settings: ``"nnm."``, or nothing.

    >>> [prefix for prefix, _ in named_parts(create("nnm+krum"))], named_parts(create("krum"))
    (['nnm.', 'krum.'], [('', Krum(num_malicious=1))])
    """
    if not isinstance(defense, Pipeline):
        return [("", defense)]
    return [(f"{name}.", part) for name, part in _names_of(defense)]


def _names_of(pipeline: Pipeline) -> Iterator[tuple[str, Part]]:
    yield from ((BEFORE.name_of(part), part) for part in pipeline.before)
    yield REGISTRY.name_of(pipeline.rule), pipeline.rule
    yield from ((AFTER.name_of(part), part) for part in pipeline.after)


def _values(part: Part) -> dict[str, Any]:
    return {key: getattr(part, key) for key in _settings(type(part))}


def _settings(cls: type[Any]) -> list[str]:
    if not dataclasses.is_dataclass(cls):
        return []
    return [field.name for field in dataclasses.fields(cls) if field.init]


def _alone(name: str, settings: Mapping[str, object]) -> Defense[Any]:
    try:
        cls = REGISTRY.find(name)
    except SettingsError:
        for kind, example in ((BEFORE, f"{name}+median"), (AFTER, f"median+{name}")):
            if _is_of(kind, name):
                raise SettingsError(
                    f"{name} is a {kind.kind}, not a defense: write {example}"
                ) from None
        raise
    return build(cls, settings, f"{REGISTRY.kind} {name}")


def _is_of(kind: Registry[Any], name: str) -> bool:
    try:
        kind.find(name)
    except SettingsError:
        return False
    return True


def _named(part: str, name: str) -> _Named:
    """Find a part among the kinds; an unknown one is an error with a suggestion."""
    if ":" in part:
        return _imported(part)
    for kind in KINDS:
        if part in kind.ours:
            return _Named(part, kind.ours[part], kind)
    for kind in KINDS:
        if part in (found := kind.available()):
            return _Named(part, found[part], kind)
    known = [plugin_name for kind in KINDS for plugin_name in kind]
    raise SettingsError(f"no part of {name!r} is called {part!r}{suggest(part, known)}")


def _imported(part: str) -> _Named:
    """Import a part that is named by its module: whichever kind its class is of."""
    problems: list[SettingsError] = []
    for kind in KINDS:
        try:
            return _Named(part, kind.find(part), kind)
        except SettingsError as error:
            problems.append(error)
    raise problems[KINDS.index(REGISTRY)]


def _check_order(parts: Sequence[_Named], name: str) -> None:
    rules = [part.name for part in parts if part.kind is REGISTRY]
    if len(rules) != 1:
        raise SettingsError(
            f"{name!r} must have one defense, got {len(rules)}"
            f"{': ' + ' and '.join(rules) if rules else ''}"
        )
    places = [KINDS.index(part.kind) for part in parts]
    for part, place, wanted in zip(parts, places, sorted(places), strict=True):
        if place != wanted:
            raise SettingsError(
                f"{name!r}: {part.name} is a {part.kind.kind}; the order is pre-aggregators, "
                "defense, post-aggregators"
            )


def _flat(settings: Mapping[str, object]) -> Iterator[tuple[str, object]]:
    """Yield settings with nested ones under ``part.setting``."""
    for key, value in settings.items():
        if isinstance(value, Mapping):
            yield from ((f"{key}.{inner}", text) for inner, text in value.items())
        else:
            yield key, value


def _divided(
    name: str, parts: Sequence[_Named], settings: Mapping[str, object]
) -> dict[str, dict[str, object]]:
    """Return the settings of each part; one whose part cannot be told is an error."""
    settings_of_part = {part.name: _settings(part.cls) for part in parts}
    divided: dict[str, dict[str, object]] = {part.name: {} for part in parts}
    for key, value in settings.items():
        part, dot, setting = key.rpartition(".")
        owners = (
            [part] if dot else [owner for owner, names in settings_of_part.items() if key in names]
        )
        if dot and part not in settings_of_part:
            raise SettingsError(
                f"no part of {name!r} is called {part!r}{suggest(part, settings_of_part)}"
            )
        if not owners:
            known = [
                f"{owner}.{field}" for owner, names in settings_of_part.items() for field in names
            ]
            raise SettingsError(f"{name!r} has no setting {key!r}{suggest(key, known)}")
        if len(owners) > 1:
            wanted = " or ".join(f"{owner}.{key}" for owner in owners)
            raise SettingsError(f"{key!r} is a setting of {' and '.join(owners)}: set {wanted}")
        if setting in divided[owners[0]]:
            raise SettingsError(f"{setting!r} of {owners[0]} is set twice")
        divided[owners[0]][setting] = value
    return divided
