"""A setup that a ``defense-set`` command works on, with its data."""

from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor

from datadefense.data.catalog import load_texts
from datadefense.data.defense_folder import DefenseSetSource
from datadefense.data.digits import DEVIATION, MEAN
from datadefense.data.errors import DataError
from datadefense.data.text import Vocabulary
from datadefense.experiments.assembly import gather
from datadefense.experiments.experiment import Experiment
from datadefense.experiments.material import Material
from datadefense.experiments.setups import experiment
from datadefense.experiments.tweets import DIRECTOR
from datadefense.settings import read_pairs


@dataclass(frozen=True, slots=True)
class Chosen:
    """A setup as the command line names it, and where data sets are."""

    setup: str | None
    scale: str = "cpu"
    seed: int = 0
    changes: tuple[str, ...] = ()
    data: Path | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A setup with its data."""

    experiment: Experiment
    material: Material
    data: Path | None

    def held_out(self) -> dict[str, Tensor]:
        """Return what models are judged by, which no defense set may hold."""
        judged = {"test": self.material.test, "backdoor test": self.material.backdoor_test}
        return {name: as_kept(examples.inputs) for name, examples in judged.items()}

    def classes(self) -> int:
        """Return how many logits the model has."""
        with torch.no_grad():
            return int(self.material.module.eval()(self.material.test.inputs[:1]).shape[1])

    def vocabulary(self) -> Vocabulary:
        """Return the words of sentiment-yl, numbered as in its material."""
        extra = DIRECTOR if self.experiment.director_words else ()
        texts = load_texts("sentiment140", self.data, "train").texts
        return Vocabulary.build(texts, self.experiment.vocabulary, extra)

    def inputs(self, source: DefenseSetSource, folder: Path) -> Tensor:
        """Return a set's inputs as the model takes them, or raise if it cannot take them.

        The digits of digits-edge are normalised in advance; other models take pixels or tokens.
        """
        given, like, name = source.inputs, self.material.test.inputs, self.experiment.setup
        if isinstance(given, tuple) and like.ndim == 2:
            given = self.vocabulary().encode(given, self.experiment.length)
        if isinstance(given, tuple) or given.shape[1:] != like.shape[1:]:
            found = "texts" if isinstance(given, tuple) else f"inputs {list(given.shape[1:])}"
            raise DataError(f"{folder} holds {found}, {name} takes inputs {list(like.shape[1:])}")
        if like.ndim == 2:
            words = next(self.material.module.parameters()).shape[0]
            odd = ((given < 0) | (given >= words)).any(1).nonzero().flatten().tolist()
            if odd:
                raise DataError(
                    f"{folder}: tokens must be in 0..{words - 1}, those of {source.ids[odd[0]]!r} "
                    "are not"
                )
        return (given / 255 - MEAN) / DEVIATION if like.is_floating_point() else given


def open_setup(chosen: Chosen) -> Opened:
    """Return the chosen setup's experiment and material."""
    torch.set_num_threads(1)
    changes = {"seed": str(chosen.seed)} | read_pairs(chosen.changes)
    configured = experiment(chosen.setup or "", chosen.scale, changes)
    return Opened(configured, gather(configured, chosen.data), chosen.data)


def as_kept(inputs: Tensor) -> Tensor:
    """Return inputs as a folder keeps them: the digits of digits-edge as pixels again."""
    if not inputs.is_floating_point():
        return inputs
    return ((inputs * DEVIATION + MEAN) * 255).round().clamp(0, 255).to(torch.uint8)


def tally(source: DefenseSetSource) -> str:
    """Return how many examples there are, and how many known clean."""
    return f"{len(source)} examples, {int(source.known_clean.sum())} known clean"


def say(text: str) -> None:
    """Print a line as it is."""
    Console().print(text, highlight=False, soft_wrap=True, markup=False)
