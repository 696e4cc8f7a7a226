"""An experiment: every choice behind a run, in parts; as TOML, and as the key of its result."""

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

import tomli_w

from datadefense import attacks, defenses, schedules, tasks
from datadefense.attacks.base import Attack
from datadefense.core.defense import Defense
from datadefense.core.prototype import USUAL
from datadefense.core.registry import Registry
from datadefense.core.settings import SettingsError, build, setting_names, suggest
from datadefense.defense_sets.pinning import digest, read_pinned
from datadefense.defenses.mean import FedAvg
from datadefense.runs.parts import (
    ONLY_LAST_BITS,
    ComputeSettings,
    Evaluation,
    FederationSettings,
    ServerSettings,
    WarmStart,
)
from datadefense.schedules.base import Schedule
from datadefense.schedules.never import Never
from datadefense.tasks.base import Scale, Task
from datadefense.tasks.digits_edge import DigitsEdge

ENGINE = 1
"""Revision of data, partition, sampling, training and evaluation, and of the parts' defaults.

Raise it when these begin to give other figures: stored runs are then run again.
"""
NO_DEFAULT = object()
"""Equal to no value."""
NONE = attacks.NONE
"""Name of the attack where nobody attacks; also how a setting that is not set is written."""
PLUGINS: Mapping[str, Registry[Any]] = {
    "task": tasks.REGISTRY,
    "attack": attacks.REGISTRY,
    "schedule": schedules.REGISTRY,
    "defense": defenses.REGISTRY,
}
"""Parts that are plug-ins: a name, and the settings of what it names."""
PLAIN: Mapping[str, type[Any]] = {
    "warm": WarmStart,
    "federation": FederationSettings,
    "server": ServerSettings,
    "evaluation": Evaluation,
    "compute": ComputeSettings,
}
"""Parts with settings only."""
ORDER = (
    *("task", "warm", "federation", "attack", "schedule"),
    *("defense", "server", "evaluation", "compute"),
)


@dataclass(frozen=True, slots=True)
class Experiment:
    """The configuration of a run. Each part is checked by itself."""

    task: Task = field(default_factory=DigitsEdge)
    warm: WarmStart = field(default_factory=WarmStart)
    federation: FederationSettings = field(default_factory=FederationSettings)
    attack: Attack | None = None
    schedule: Schedule = field(default_factory=Never)
    defense: Defense[Any] = field(default_factory=FedAvg)
    server: ServerSettings = field(default_factory=ServerSettings)
    evaluation: Evaluation = field(default_factory=Evaluation)
    compute: ComputeSettings = field(default_factory=ComputeSettings)
    seed: int = 0
    scale: Scale = "cpu"

    def __post_init__(self) -> None:
        if self.attack is None and type(self.schedule) is not Never:
            object.__setattr__(self, "schedule", Never())
        self.schedule.check(self.federation.clients, self.federation.clients_per_round)

    @property
    def rounds(self) -> int:
        """Rounds of the federation."""
        return self.federation.rounds

    def name_of(self, part: str) -> str:
        """Return the name of a plug-in: of the task, attack, schedule or defense."""
        plugin = getattr(self, part)
        if part == "defense":
            return defenses.name_of(plugin)
        return NONE if plugin is None else PLUGINS[part].name_of(plugin)

    @property
    def attacked(self) -> bool:
        """Whether somebody attacks, or a defense other than averaging is at work."""
        return self.attack is not None or type(self.defense) is not FedAvg

    def without_attack(self) -> "Experiment":
        """Return the run without attack: fedavg, and nobody attacks.

        It has the same task, federation and evaluation. Parts that only matter to attackers and
        defenses are the default ones, so that experiments that differ in nothing else share it.
        """
        return Experiment(
            task=self.task,
            warm=self.warm,
            federation=self.federation,
            evaluation=dataclasses.replace(self.evaluation, checkpoint_every=5),
            compute=dataclasses.replace(self.compute, server_precision="float32"),
            seed=self.seed,
            scale=self.scale,
        )

    def changes(self) -> dict[str, Any]:
        """Return what differs from the defaults of the parts, which is all that need be stored."""
        found: dict[str, Any] = {}
        for part in ORDER:
            values = _changes(getattr(self, part))
            if part in PLUGINS:
                values = {"name": self.name_of(part), **values}
            if values:
                found[part] = values
        if self.seed:
            found["seed"] = self.seed
        if self.scale != "cpu":
            found["scale"] = self.scale
        return found

    def key(self) -> str:
        """Return a short hash of the whole configuration and of the code's revision.

        A setting that is added later, with a default that changes nothing, renames no stored run. A
        defense set counts by its content, wherever its folder is.
        """
        return next(self.keys())

    def keys(self) -> Iterator[str]:
        """Return the key, then those that the configuration has had before, the latest first."""
        for numbers in product(*(range(number, 0, -1) for number in self._revisions())):
            yield self.key_of(numbers)

    def seed_keys(self, count: int) -> list[str]:
        """Return the key that it has with each of the first seeds, much sooner than one by one."""
        known = self._known()
        known.pop("seed", None)
        seeds: list[dict[str, Any]] = [{"seed": seed} if seed else {} for seed in range(count)]
        return [_hashed(known | seed, self._revisions()) for seed in seeds]

    def key_of(self, revisions: Sequence[int]) -> str:
        """Return the key at given revisions of engine, attack and defense."""
        return _hashed(self._known(), revisions)

    def _revisions(self) -> Sequence[int]:
        return (ENGINE, 1 if self.attack is None else self.attack.revision, self.defense.revision)

    def _known(self) -> dict[str, Any]:
        """Return what a key is made of, but for the revisions."""
        changes = self.changes()
        server = dict(changes.pop("server", {}))
        if server.pop("folder", None) is not None and self.server.digest is None:
            raise SettingsError("a run with a server.folder has a key once it is `pinned`")
        compute = {
            name: value
            for name, value in changes.pop("compute", {}).items()
            if name not in ONLY_LAST_BITS
        }
        return changes | {
            name: part for name, part in (("server", server), ("compute", compute)) if part
        }


def _hashed(known: Mapping[str, Any], revisions: Sequence[int]) -> str:
    text = json.dumps([known, list(revisions)], sort_keys=True, default=list)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def pinned(experiment: Experiment) -> Experiment:
    """Return the experiment with the digest of its defense set, and the folder's whole path.

    Raises if it has a digest already and the folder has another: it was edited since.
    """
    server = experiment.server
    if server.folder is None:
        return experiment
    folder = Path(server.folder).absolute()
    found = digest(read_pinned(folder, server.digest))
    pinned_server = dataclasses.replace(server, folder=str(folder), digest=found)
    return dataclasses.replace(experiment, server=pinned_server)


def _changes(part: Any) -> dict[str, Any]:
    """Return the settings of a part that are not the defaults of its class."""
    now, plain = settings_of(part), default_settings(part)
    return {name: value for name, value in now.items() if value != plain.get(name, NO_DEFAULT)}


def settings_of(part: Any) -> dict[str, Any]:
    """Return the settings of a part by name; those of a composed defense are ``part.name``."""
    if isinstance(part, Defense):
        return defenses.settings_of(part)
    if not dataclasses.is_dataclass(part):
        return {}
    found: dict[str, Any] = {}
    for setting in dataclasses.fields(part):
        if setting.init:
            value = getattr(part, setting.name)
            whole = setting.type in (float, "float") and type(value) is int
            found[setting.name] = float(value) if whole else value
    return found


def default_settings(part: Any) -> dict[str, Any]:
    """Return the settings that a part has where nothing is said."""
    if isinstance(part, Defense):
        return defenses.settings_of(defenses.create(defenses.name_of(part)))
    fields = dataclasses.fields(part) if dataclasses.is_dataclass(part) else ()
    return {setting.name: _default(setting) for setting in fields if setting.init}


def _default(setting: "dataclasses.Field[Any]") -> Any:
    if USUAL in setting.metadata:
        return setting.metadata[USUAL]
    if setting.default_factory is not dataclasses.MISSING:
        return setting.default_factory()
    return setting.default


def document_of(experiment: Experiment) -> dict[str, Any]:
    """Return every setting by name, a section a part; what is not set has the text ``none``."""
    document: dict[str, Any] = {"seed": experiment.seed, "scale": experiment.scale}
    for part in ORDER:
        section: dict[str, Any] = {}
        if part in PLUGINS:
            section["name"] = experiment.name_of(part)
        for name, found in settings_of(getattr(experiment, part)).items():
            section[name] = NONE if found is None else found
        document[part] = section
    return document


def flat_settings(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings of sections by key: ``task`` is the task's name, then ``part.setting``.

    >>> flat_settings({"seed": 0, "attack": {"name": "pgd", "epochs": 5}})
    {'seed': 0, 'attack': 'pgd', 'attack.epochs': 5}
    """
    flat: dict[str, Any] = {}
    for part, section in document.items():
        if not isinstance(section, Mapping):
            flat[part] = section
            continue
        for name, value in section.items():
            flat[part if name == "name" else f"{part}.{name}"] = value
    return flat


def write_toml(experiment: Experiment) -> str:
    """Return the configuration as TOML, every setting by name, a section a part."""
    return tomli_w.dumps(document_of(experiment))


def read_toml(path: Path) -> Experiment:
    """Read a configuration back."""
    document = read_document(path)
    try:
        return experiment_of(document)
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def read_document(path: Path) -> dict[str, Any]:
    """Read the sections of a file, of which nothing is checked."""
    try:
        return _sections(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeError) as error:
        raise SettingsError(f"{path}: no readable configuration: {error}") from error
    except SettingsError as error:
        raise SettingsError(f"{path}: {error}") from error


def parse_toml(text: str) -> Experiment:
    """Return the configuration that a text holds."""
    return experiment_of(_sections(text))


def _sections(text: str) -> dict[str, Any]:
    try:
        return tomllib.loads(text)
    except (RecursionError, tomllib.TOMLDecodeError) as error:
        raise SettingsError(f"no readable configuration: {error}") from error


def experiment_of(document: Mapping[str, Any]) -> Experiment:
    """Return the configuration of sections by name, as `Experiment.changes` gives them.

    What a section or the whole leaves out has the default of its class.
    """
    names = (*ORDER, "seed", "scale")
    for name, value in document.items():
        if name not in names:
            raise SettingsError(f"there is no part {name!r}{suggest(name, names)}")
        if name in ORDER and not isinstance(value, Mapping):
            raise SettingsError(f"[{name}] must be a section, got {value!r}")
    seed, scale = document.get("seed", 0), document.get("scale", "cpu")
    if type(seed) is not int:
        raise SettingsError(f"seed must be an integer, got {seed!r}")
    if scale not in ("cpu", "paper"):
        raise SettingsError(f"scale must be cpu or paper, got {scale!r}")
    parts: dict[str, Any] = {}
    for part in ORDER:
        section = dict(document.get(part, {}))
        if part in PLAIN:
            parts[part] = build_part(PLAIN[part], section, part)
            continue
        named = section.pop("name", None)
        if named == NONE and part == "attack":
            parts[part] = None
        elif named is not None:
            parts[part] = build_plugin(part, str(named), section)
        elif section:
            raise SettingsError(f"[{part}] has settings but no name")
    return Experiment(**parts, seed=seed, scale=scale)


def build_plugin(part: str, name: str, values: Mapping[str, Any]) -> Any:
    """Make a plug-in of its name and settings; a defense may be composed."""
    if part != "defense":
        return build_part(PLUGINS[part].find(name), values, part, name)
    with named_errors(list(defenses.settings_of(defenses.create(name))), part):
        return defenses.create(name, values)


def build_part(cls: type[Any], values: Mapping[str, Any], part: str, name: str = "") -> Any:
    """Make a part of its settings; an error says which part it is about."""
    with named_errors(setting_names(cls), part):
        return build(cls, values, f"{part} {name}".strip())


@contextmanager
def named_errors(names: Sequence[str], part: str) -> Iterator[None]:
    """Name the part in an error about its settings: ``attack.epochs must be >= 1, got 0``."""
    try:
        yield
    except SettingsError as error:
        first = str(error).partition(" ")[0]
        if first == part or first.startswith(f"{part}."):
            raise
        mark = "." if first in names else ": "
        raise SettingsError(f"{part}{mark}{error}") from error
