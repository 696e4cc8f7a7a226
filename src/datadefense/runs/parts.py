"""Parts of a configuration that are no plug-ins: first model, federation, server, and so on."""

from dataclasses import dataclass
from typing import Literal

from datadefense.core.local_training import Sgd
from datadefense.core.settings import SettingsError, check_choice, check_float, check_int, setting

Partition = Literal["iid", "dirichlet", "user"]
ChosenPrecision = Literal["float32", "bf16", "auto"]
ChosenFormat = Literal["contiguous", "channels_last", "auto"]


@dataclass(frozen=True, slots=True)
class WarmStart:
    """How the first model is trained, before the first round."""

    accuracy_percent: float | None = setting(None, "accuracy at which it stops; none: not early")
    epochs: int = setting(60, "most passes; all of them if no accuracy is set; 0: no training")
    learning_rate: float = setting(0.01, "step size")
    batch_size: int = setting(32, "examples a step")
    seed: int = setting(0, "seed of its random numbers, the same for all seeds of a run")

    def __post_init__(self) -> None:
        check_int("warm.epochs", self.epochs, 0)
        if self.accuracy_percent is not None:
            check_float("warm.accuracy_percent", self.accuracy_percent, above=0, maximum=100)
            check_int("warm.epochs", self.epochs, 1)
        if self.epochs:
            self.training()

    def training(self) -> Sgd:
        """Return one pass."""
        return Sgd(1, self.batch_size, self.learning_rate, 0.9, 1e-4)


@dataclass(frozen=True, slots=True)
class FederationSettings:
    """How many clients there are, what they hold, and how the honest ones train."""

    rounds: int = setting(30, "rounds of the federation")
    clients: int = setting(50, "clients in the federation")
    clients_per_round: int = setting(10, "clients in a round")
    partition: Partition = setting("iid", "how clients' data differ: iid, dirichlet or user")
    alpha: float = setting(0.5, "concentration of the Dirichlet partition; small: very different")
    epochs: int = setting(2, "passes of an honest client over its examples")
    batch_size: int = setting(32, "examples a step")
    learning_rate: float = setting(0.01, "step size of honest clients in the first round")
    decay: float = setting(1.0, "factor on step sizes from one round to the next")
    momentum: float = setting(0.9, "momentum of clients and attackers")
    weight_decay: float = setting(1e-4, "weight decay of clients and attackers")

    def __post_init__(self) -> None:
        for name in ("rounds", "clients", "clients_per_round"):
            check_int(name, getattr(self, name), 1)
        check_float("alpha", self.alpha, above=0)
        self.training()

    def training(self) -> Sgd:
        """Return how honest clients train."""
        return Sgd(
            self.epochs,
            self.batch_size,
            self.learning_rate,
            self.momentum,
            self.weight_decay,
            self.decay,
        )


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """What the server holds: the defense set, of the task's own examples or from a folder."""

    known_clean: int = setting(100, "examples of the defense set that are known to be clean")
    clean: int = setting(400, "clean examples of the defense set, known or not")
    poison: int = setting(100, "poisoned examples of the defense set")
    wrong_marks_percent: float = setting(0.0, "share of the known clean that is poisoned")
    marked_class: int | None = setting(None, "class of all known clean examples; none: any")
    poison_view: str = setting("same", "how the server's poison looks beside the attacker's")
    folder: str | None = setting(None, "folder of a defense set; none: the task's own")
    digest: str | None = setting(None, "content of that folder, filled in by the run")

    def __post_init__(self) -> None:
        check_int("server.known_clean", self.known_clean, 1)
        check_int("server.clean", self.clean, 1)
        check_int("server.poison", self.poison, 0)
        check_float("wrong_marks_percent", self.wrong_marks_percent, minimum=0, maximum=100)
        if self.known_clean > self.clean:
            raise SettingsError(
                f"server.known_clean must be <= server.clean, got {self.known_clean} > {self.clean}"
            )
        if self.folder is None:
            if self.digest is not None:
                raise SettingsError("server.digest needs a server.folder")
            return
        plain = ServerSettings()
        for name in SHAPE_THE_TASKS_OWN_SET:
            if getattr(self, name) != getattr(plain, name):
                raise SettingsError(
                    f"server.{name} cannot be set together with server.folder: "
                    "the content of the folder counts"
                )


SHAPE_THE_TASKS_OWN_SET = (
    "known_clean",
    "clean",
    "wrong_marks_percent",
    "marked_class",
    "poison_view",
)
"""Settings that only say what is taken of the task's own examples."""


@dataclass(frozen=True, slots=True)
class Evaluation:
    """When a run is judged and saved."""

    test_examples: int = setting(0, "test examples that count for the accuracy; 0: all")
    evaluate_every: int = setting(1, "rounds from one evaluation to the next")
    checkpoint_every: int = setting(5, "rounds from one checkpoint to the next")

    def __post_init__(self) -> None:
        check_int("test_examples", self.test_examples, 0)
        check_int("evaluate_every", self.evaluate_every, 1)
        check_int("checkpoint_every", self.checkpoint_every, 1)


@dataclass(frozen=True, slots=True)
class ComputeSettings:
    """In what precision and memory format passes are computed; ``auto``: what is faster here.

    A run writes what it chose, and the processor it was chosen for, into its ``config.toml``, and
    keeps to it when it is resumed. Precision is part of what a run is and counts for its key; the
    memory format and the processor change the last bits only and do not.
    """

    training_precision: ChosenPrecision = setting(
        "float32", "of clients' passes: float32, bf16 or auto"
    )
    server_precision: ChosenPrecision = setting(
        "float32", "of the server's passes: float32, bf16 or auto"
    )
    training_format: ChosenFormat = setting(
        "auto", "of clients' images in memory: contiguous, channels_last or auto"
    )
    server_format: ChosenFormat = setting(
        "auto", "of the server's images in memory: contiguous, channels_last or auto"
    )
    processor: str | None = setting(None, "what the choice was made for, filled in by the run")

    def __post_init__(self) -> None:
        for name in ("training_precision", "server_precision"):
            check_choice(name, getattr(self, name), ("float32", "bf16", "auto"))
        for name in ("training_format", "server_format"):
            check_choice(name, getattr(self, name), ("contiguous", "channels_last", "auto"))


ONLY_LAST_BITS = ("training_format", "server_format", "processor")
"""Settings of `ComputeSettings` that do not count for a run's key."""
