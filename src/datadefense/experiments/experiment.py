"""An experiment: every choice behind a run, by name."""

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from datadefense.attacks.pgd import Pgd
from datadefense.attacks.schedule import FixedFrequency, FixedPool, Never, Schedule
from datadefense.settings import SettingsError, number, one_of, parse, setting, suggest, whole
from datadefense.training import Sgd

Scale = Literal["cpu", "paper"]
ScheduleName = Literal["fixed-frequency", "fixed-pool"]
Partition = Literal["iid", "dirichlet"]


@dataclass(frozen=True, slots=True)
class Experiment:
    """The configuration of a run. A setup and a scale give every field its value."""

    setup: str = setting("digits-edge", "which task and which backdoor")
    scale: Scale = setting("cpu", "cpu (reduced, for 2 cores) or paper (the paper's numbers)")
    defense: str = setting("fedavg", "name of the defense")
    attack: str = setting("pgd-replacement", "name of the attack; none: nobody attacks")
    seed: int = setting(0, "root of all randomness")
    rounds: int = setting(30, "rounds of the federation")

    dataset: str = setting("digits", "data of the main task")
    clients: int = setting(50, "clients in the federation")
    clients_per_round: int = setting(10, "clients in a round")
    partition: Partition = setting("dirichlet", "how clients' data differ: iid or dirichlet")
    alpha: float = setting(0.5, "concentration of the Dirichlet partition")
    model: str = setting("lenet", "architecture")
    width: float = setting(1.0, "factor on the architecture's channels")
    warm_accuracy_percent: float = setting(83.0, "accuracy at which the warm start stops")

    epochs: int = setting(2, "passes of an honest client over its examples")
    batch_size: int = setting(32, "examples a step")
    learning_rate: float = setting(0.01, "step size of honest clients in the first round")
    decay: float = setting(1.0, "factor on step sizes from one round to the next")
    momentum: float = setting(0.9, "momentum of honest clients")
    weight_decay: float = setting(1e-4, "weight decay of honest clients and attackers")
    augment: bool = setting(False, "random crops and flips")

    attack_epochs: int = setting(5, "passes of an attacker over its examples")
    attack_learning_rate: float = setting(0.02, "step size of attackers in the first round")
    attack_clean: int = setting(100, "clean examples of an attacker")
    attack_poison: int = setting(66, "poisoned examples of an attacker")
    radius: float = setting(1.0, "radius of the attacker's ball")
    radius_decay: float = setting(1.0, "factor on the radius from one round to the next")
    project_every: int = setting(10, "steps from one projection to the next")

    schedule: ScheduleName = setting("fixed-frequency", "fixed-frequency or fixed-pool")
    period: int = setting(5, "rounds from one attack to the next (1: every round)")
    first_attack: int = setting(1, "round of the first attack")
    last_attack: int | None = setting(None, "round after which no attack comes; none: never")
    attackers: int = setting(1, "attackers in an attacked round (fixed-frequency)")
    pool: int = setting(10, "malicious clients among all (fixed-pool)")

    server_clean: int = setting(100, "clean examples of the server")
    evaluate_every: int = setting(1, "rounds from one evaluation to the next")
    checkpoint_every: int = setting(5, "rounds from one checkpoint to the next")
    defense_settings: Mapping[str, str] = field(
        default_factory=dict, metadata={"help": "settings of the defense, as text"}
    )

    def __post_init__(self) -> None:
        for name, least in (
            ("rounds", 1),
            ("clients", 1),
            ("clients_per_round", 1),
            ("attack_clean", 0),
            ("attack_poison", 1),
            ("server_clean", 1),
            ("evaluate_every", 1),
            ("checkpoint_every", 1),
        ):
            whole(name, getattr(self, name), least)
        number("alpha", self.alpha, above=0)
        number("width", self.width, above=0)
        one_of("attack", self.attack, ATTACKS)
        self.honest_training()
        self.make_attack()
        self.make_schedule().check(self.clients, self.clients_per_round)

    def honest_training(self) -> Sgd:
        """Return how honest clients train."""
        return Sgd(
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.momentum,
            self.weight_decay,
            self.decay,
        )

    def make_attack(self) -> Pgd | None:
        """Return the attack; None where nobody attacks."""
        if self.attack == "none":
            return None
        return Pgd(
            epochs=self.attack_epochs,
            batch_size=self.batch_size,
            learning_rate=self.attack_learning_rate,
            decay=self.decay,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            radius=None if self.attack == "black-box" else self.radius,
            radius_decay=self.radius_decay,
            project_every=self.project_every,
            replacement=self.attack == "pgd-replacement",
        )

    def make_schedule(self) -> Schedule:
        """Return who comes when."""
        if self.attack == "none":
            return Never()
        if self.schedule == "fixed-pool":
            return FixedPool(self.pool, self.last_attack)
        return FixedFrequency(self.period, self.first_attack, self.last_attack, self.attackers)

    def key(self) -> str:
        """Return a short hash of the whole configuration."""
        text = json.dumps(dataclasses.asdict(self), sort_keys=True)
        return hashlib.sha256(text.encode()).hexdigest()[:16]


ATTACKS = ("none", "black-box", "pgd", "pgd-replacement")
"""Names of attacks."""

SETUPS: Mapping[str, Mapping[str, Experiment]] = {
    "digits-edge": {"cpu": Experiment(), "paper": Experiment(scale="paper")},
}
"""The setups at each scale."""


def experiment(setup: str, scale: str, changes: Mapping[str, str]) -> Experiment:
    """Return a setup's experiment with fields changed by text values.

    ``defense.KEY`` sets a setting of the defense; an unknown key is an error with a suggestion.
    """
    if setup not in SETUPS:
        raise SettingsError(f"no setup is called {setup!r}{suggest(setup, SETUPS)}")
    one_of("scale", scale, ("cpu", "paper"))
    base = SETUPS[setup][scale]
    plain = {key: text for key, text in changes.items() if not key.startswith("defense.")}
    settings = {
        key.removeprefix("defense."): text
        for key, text in changes.items()
        if key.startswith("defense.")
    }
    return dataclasses.replace(base, **parse(Experiment, plain), defense_settings=settings)


def write_toml(experiment: Experiment) -> str:
    """Return the configuration as TOML, every field by name."""
    values = dataclasses.asdict(experiment)
    settings = values.pop("defense_settings")
    lines = [f"{key} = {_toml(value)}" for key, value in values.items() if value is not None]
    lines += ["", "[defense_settings]", *(f"{k} = {_toml(v)}" for k, v in settings.items())]
    return "\n".join(lines) + "\n"


def read_toml(path: Path) -> Experiment:
    """Read a configuration back."""
    try:
        values: dict[str, Any] = tomllib.loads(path.read_text(encoding="utf-8"))
        return Experiment(**values)
    except (OSError, tomllib.TOMLDecodeError, TypeError) as error:
        raise SettingsError(f"{path} is not a readable configuration: {error}") from error


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else repr(value)
