"""An experiment: every choice behind a run, by name."""

import dataclasses
import hashlib
import json
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from datadefense.attacks.oracle import Knowledge
from datadefense.attacks.pgd import Pgd
from datadefense.attacks.pools import Overlap
from datadefense.attacks.schedule import FixedFrequency, FixedPool, Never, Schedule
from datadefense.core.local_training import Sgd
from datadefense.core.settings import SettingsError, check_choice, check_float, check_int, setting
from datadefense.runs.attack_kinds import ATTACKS
from datadefense.runs.revisions import revisions

Scale = Literal["cpu", "paper"]
ScheduleName = Literal["fixed-frequency", "fixed-pool"]
Partition = Literal["iid", "dirichlet", "user"]
PoisonView = Literal[
    "same", "recoloured", "larger", "corner", "relabelled", "relabelled-any", "triggers"
]
Sevens = Literal["ardis", "uci"]
SecondBackdoor = Literal["none", "known", "unknown"]


ATTACKERS_ONLY = (
    "attack_epochs",
    "attack_learning_rate",
    "radius",
    "replacement_radius",
    "radius_decay",
    "project_every",
    "poison_share",
    "tolerance",
    "reach",
    "drip_slack",
    "knowledge",
    "least_weight",
    "longest_step",
    "schedule",
    "period",
    "first_attack",
    "last_attack",
    "attackers",
    "pool",
    "server_clean",
    "defense_clean",
    "server_poison",
    "wrong_marks_percent",
    "marked_class",
    "poison_view",
    "defense_folder",
    "defense_digest",
    "checkpoint_every",
)
"""Fields that do not matter when nobody attacks fedavg. Who holds which examples does."""
NOT_WITH_A_FOLDER = (
    "server_clean",
    "defense_clean",
    "wrong_marks_percent",
    "marked_class",
    "poison_view",
)
"""Fields that only shape the setup's own defense set."""


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
    partition: Partition = setting("dirichlet", "how clients' data differ: iid, dirichlet or user")
    alpha: float = setting(0.5, "concentration of the Dirichlet partition")
    model: str = setting("lenet", "architecture")
    width: float = setting(1.0, "factor on the architecture's channels")
    vocabulary: int = setting(20_000, "words that a text model knows")
    director_words: bool = setting(True, "a text model knows the words of the backdoor")
    length: int = setting(30, "words of a text that are read")
    warm_accuracy_percent: float = setting(83.0, "accuracy at which the warm start stops")
    warm_learning_rate: float = setting(0.01, "step size of the warm start")
    warm_batch_size: int = setting(32, "examples a step of the warm start")
    warm_seed: int = setting(0, "root of the warm start's randomness, shared by all seeds")

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
    replacement_radius: float = setting(1.0, "radius when the update is scaled to replace")
    radius_decay: float = setting(1.0, "factor on the radius from one round to the next")
    project_every: int = setting(10, "steps from one projection to the next")
    poison_share: float = setting(0.2, "share of a data poisoner's examples that is poisoned")
    tolerance: float = setting(0.2, "share of the poison's loss that adaptive and drip take off")
    reach: float = setting(1.5, "radius of adaptive's and drip's ball, in honest updates")
    drip_slack: float = setting(1.0, "what drip dares to know beyond the first model; 1: no limit")
    knowledge: Knowledge = setting("everything", "what oracle knows: nothing, rule or everything")
    least_weight: float = setting(0.5, "weight that oracle wants, in fair shares 1/n")
    longest_step: float = setting(30.0, "most that oracle multiplies its backdoor by")

    schedule: ScheduleName = setting("fixed-frequency", "fixed-frequency or fixed-pool")
    period: int = setting(5, "rounds from one attack to the next (1: every round)")
    first_attack: int = setting(1, "round of the first attack")
    last_attack: int | None = setting(None, "round after which no attack comes; none: never")
    attackers: int = setting(1, "attackers in an attacked round (fixed-frequency)")
    pool: int = setting(10, "malicious clients among all (fixed-pool)")

    sevens: Sevens = setting("ardis", "whose sevens emnist-ardis calls ones: ardis or uci")
    trigger_size: int = setting(8, "width and height of the trigger patch")
    trigger_weight: float = setting(0.8, "weight of the trigger patch against the image")
    overlap: Overlap = setting("none", "authors: the server's poison is the attacker's own")

    server_clean: int = setting(100, "examples that the server knows to be clean")
    defense_clean: int = setting(400, "clean examples of the defense set, known or not")
    server_poison: int = setting(100, "poisoned examples of the defense set; uci has 56")
    wrong_marks_percent: float = setting(0.0, "share of the known clean that is poisoned")
    marked_class: int | None = setting(None, "class of all known clean examples; none: any")
    poison_view: PoisonView = setting("same", "how the server's poison looks beside the attacker's")
    second_backdoor: SecondBackdoor = setting("none", "a second one, known to the server or not")
    defense_folder: str | None = setting(None, "folder of a defense set; none: the setup's own")
    defense_digest: str | None = setting(None, "content of that folder, filled in by the run")
    test_examples: int = setting(0, "test examples that count for the accuracy; 0: all")
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
            ("attackers", 1),
            ("pool", 1),
            ("attack_clean", 0),
            ("attack_poison", 1),
            ("server_clean", 1),
            ("defense_clean", 1),
            ("server_poison", 0),
            ("vocabulary", 1),
            ("length", 1),
            ("test_examples", 0),
            ("evaluate_every", 1),
            ("checkpoint_every", 1),
        ):
            check_int(name, getattr(self, name), least)
        check_float("alpha", self.alpha, above=0)
        check_float("radius", self.radius, minimum=0)
        check_float("replacement_radius", self.replacement_radius, minimum=0)
        check_float("width", self.width, above=0)
        check_float("wrong_marks_percent", self.wrong_marks_percent, minimum=0, maximum=100)
        if self.server_clean > self.defense_clean:
            raise SettingsError(
                f"server_clean must be <= defense_clean, "
                f"got {self.server_clean} > {self.defense_clean}"
            )
        check_choice("attack", self.attack, ATTACKS)
        self._check_folder()
        self.honest_training()
        self.make_attack()
        self.make_schedule().check(self.clients, self.clients_per_round)

    def _check_folder(self) -> None:
        if self.defense_folder is None:
            if self.defense_digest is not None:
                raise SettingsError("defense_digest needs a defense_folder")
            return
        for one in dataclasses.fields(self):
            if one.name in NOT_WITH_A_FOLDER and getattr(self, one.name) != one.default:
                raise SettingsError(
                    f"{one.name} does not go with a defense set of one's own: "
                    "what is in its folder counts"
                )

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
        kind = ATTACKS[self.attack]
        radius = self.replacement_radius if kind.replacement else self.radius
        return Pgd(
            epochs=self.epochs if kind.as_honest else self.attack_epochs,
            batch_size=self.batch_size,
            learning_rate=self.learning_rate if kind.as_honest else self.attack_learning_rate,
            decay=self.decay,
            momentum=self.momentum,
            weight_decay=self.weight_decay,
            radius=radius if kind.ball else None,
            radius_decay=self.radius_decay,
            project_every=self.project_every,
            replacement=kind.replacement,
            twist=kind.twist(self),
        )

    def make_schedule(self) -> Schedule:
        """Return who comes when."""
        if self.attack == "none":
            return Never()
        if self.schedule == "fixed-pool":
            return FixedPool(self.pool, self.last_attack)
        return FixedFrequency(self.period, self.first_attack, self.last_attack, self.attackers)

    def without_attack(self) -> "Experiment":
        """Return the experiment whose success rate is the floor: fedavg, and nobody attacks.

        Choices that only matter to attackers fall back on their defaults, so that experiments that
        differ in nothing else share one floor.
        """
        plain: dict[str, Any] = {
            one.name: one.default for one in dataclasses.fields(self) if one.name in ATTACKERS_ONLY
        }
        return dataclasses.replace(
            self, attack="none", defense="fedavg", defense_settings={}, **plain
        )

    def changes(self) -> dict[str, Any]:
        """Return the fields that differ from the defaults, which is all that need be stored."""
        return {
            one.name: value
            for one in dataclasses.fields(self)
            if (value := getattr(self, one.name)) != getattr(DEFAULTS, one.name)
        }

    def key(self) -> str:
        """Return a short hash of the whole configuration and of the code's revision.

        A field that is added later, with a default that changes nothing, renames no stored run. A
        defense set counts by its content, wherever its folder is.
        """
        return next(self.keys())

    def keys(self) -> Iterator[str]:
        """Return the key, then those that the configuration has had before, the latest first."""
        changes = self.changes()
        if changes.pop("defense_folder", None) is not None and self.defense_digest is None:
            raise SettingsError("a run with a defense_folder has a key once it is `pinned`")
        for numbers in revisions(self.attack, self.defense):
            text = json.dumps([changes, numbers], sort_keys=True, default=dict)
            yield hashlib.sha256(text.encode()).hexdigest()[:16]


DEFAULTS = Experiment()


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
    except (OSError, UnicodeError, RecursionError, tomllib.TOMLDecodeError, TypeError) as error:
        raise SettingsError(f"{path} is not a readable configuration: {error}") from error


def _toml(value: Any) -> str:
    if isinstance(value, bool):
        return str(value).lower()
    return json.dumps(value) if isinstance(value, str) else repr(value)
