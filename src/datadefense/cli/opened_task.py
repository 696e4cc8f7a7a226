"""A task that a ``defense-set`` command works on, with its data."""

from dataclasses import dataclass
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.cli.plain_console import plain_console
from datadefense.core.foreign import sanitize
from datadefense.core.settings import read_pairs
from datadefense.data.cache import cache_folder
from datadefense.defense_sets.folder import DefenseSetSource
from datadefense.defense_sets.inputs import to_model_inputs
from datadefense.runs.build import load_data
from datadefense.runs.config import Experiment
from datadefense.runs.configure import configure
from datadefense.runs.warm_start import warm_start
from datadefense.tasks.base import TaskData


@dataclass(frozen=True, slots=True)
class Chosen:
    """A task as the command line names it, and where data sets are."""

    task: str | None
    scale: str = "cpu"
    seed: int = 0
    changes: tuple[str, ...] = ()
    data: Path | None = None


@dataclass(frozen=True, slots=True)
class Opened:
    """A task with its data."""

    experiment: Experiment
    data: TaskData

    def inputs(self, source: DefenseSetSource, folder: Path) -> Tensor:
        """Return a set's inputs as the model takes them, or raise if it cannot take them."""
        return to_model_inputs(source, folder, self.data, self.experiment.name_of("task"))


def open_task(chosen: Chosen) -> Opened:
    """Return the chosen task's experiment and data."""
    torch.set_num_threads(1)
    changes = {"seed": str(chosen.seed)} | read_pairs(chosen.changes)
    configured = configure(chosen.task or "", chosen.scale, changes)
    return Opened(configured, load_data(configured, chosen.data))


def first_model(opened: Opened) -> Float[Tensor, " dim"]:
    """Return the parameters that the task's runs begin with, trained now if they are not kept."""
    with plain_console().status("warm start") as status:
        return warm_start(
            opened.experiment.warm,
            opened.data,
            cache_folder(),
            lambda epochs, percent: status.update(
                f"warm start: {percent:.1f} % after {epochs:.1f} epochs"
            ),
        )


def tally(source: DefenseSetSource) -> str:
    """Return how many examples there are, and how many known clean."""
    return f"{len(source)} examples, {int(source.known_clean.sum())} known clean"


def say(text: str) -> None:
    """Print a line as it is, less what a terminal would obey."""
    plain_console().print(sanitize(text, 2000), highlight=False, soft_wrap=True)
