"""The models that ``defense-set suggest`` compares: from runs, from files, or the task's first."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from jaxtyping import Float
from torch import Tensor

from datadefense.cli.opened_task import Opened, first_model
from datadefense.core.predictor import Layout, predictor
from datadefense.core.round_files import FileError, read_tensors
from datadefense.core.settings import SettingsError, check_choice
from datadefense.defense_sets.suggestions.models import Models
from datadefense.runs.final_model import run_model


@dataclass(frozen=True, slots=True)
class ModelPlaces:
    """Where models are: folders of runs, or safetensors files.

    Args:
        suspect: the model that may have a backdoor.
        trusted: the model that has none; None: the one that the task's runs begin with.
        sends: what the suspect's file holds: ``models``, or ``updates``, which are added to the
            trusted model.
    """

    suspect: Path | None = None
    trusted: Path | None = None
    sends: str = "models"

    def compared(self, opened: Opened) -> Models:
        """Return both models as functions of inputs as a folder keeps them."""
        check_choice("sends", self.sends, ("models", "updates"))
        if self.suspect is None:
            raise SettingsError("this method compares models: --suspect names a run or a file")
        module = opened.data.module
        layout = Layout.of_module(module)
        trusted = first_model(opened) if self.trusted is None else read_params(self.trusted, layout)
        suspect = read_params(self.suspect, layout)
        if self.sends == "updates":
            suspect = trusted + suspect
        predict = predictor(module, layout)

        def of(params: Float[Tensor, " dim"]) -> Callable[[Tensor], Tensor]:
            return lambda stored: predict(params, opened.data.as_input(stored))

        return Models(of(suspect), of(trusted))


def read_params(path: Path, layout: Layout) -> Float[Tensor, " dim"]:
    """Return the parameters of a run's last checkpoint, or those in a safetensors file."""
    if path.is_dir():
        return run_model(path, layout)
    file = read_tensors(path)
    if problem := layout.mismatch(file.tensors):
        raise FileError(f"{path} does not fit the task's model: {problem}")
    params = layout.flatten({slot.name: file.tensors[slot.name] for slot in layout.slots})
    if not bool(params.isfinite().all()):
        raise FileError(f"{path} holds values that are not finite")
    return params
