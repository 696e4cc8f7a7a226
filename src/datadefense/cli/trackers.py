"""Trackers: log every round to TensorBoard, MLflow or Weights & Biases."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from datadefense.core.settings import SettingsError, check_choice
from datadefense.runs.config import Experiment, document_of, flat_settings
from datadefense.runs.metrics import figures_of
from datadefense.simulation.rounds import RoundRecord

Log = Callable[[int, Mapping[str, float]], None]
"""Takes the number of a round and its figures."""


@contextmanager
def tracked(
    names: Sequence[str], experiment: Experiment, folder: Path
) -> Iterator[Callable[[RoundRecord], None]]:
    """Open the trackers by name; what is yielded tells all of them of a round."""
    with ExitStack() as stack:
        logs = [stack.enter_context(_open(name, experiment, folder)) for name in names]

        def tell(record: RoundRecord) -> None:
            for log in logs:
                log(record.round, figures_of(record))

        yield tell


@contextmanager
def _open(name: str, experiment: Experiment, folder: Path) -> Iterator[Log]:
    """Open a tracker; one that refuses to begin is a mistake of its configuration."""
    with ExitStack() as stack:
        try:
            log = stack.enter_context(TRACKERS[name](experiment, folder))
        except Exception as error:
            raise SettingsError(f"--log {name} cannot begin: {error}") from error
        yield log


@contextmanager
def _tensorboard(experiment: Experiment, folder: Path) -> Iterator[Log]:
    """Event files in the run's folder: ``tensorboard --logdir runs``."""
    writer = _need("tensorboard").SummaryWriter(str(folder))
    writer.add_text("config", "\n\n".join(f"{k} = {v}" for k, v in _settings(experiment).items()))

    def log(index: int, figures: Mapping[str, float]) -> None:
        for name, value in figures.items():
            writer.add_scalar(name, value, index)

    try:
        yield log
    finally:
        writer.close()


@contextmanager
def _mlflow(experiment: Experiment, folder: Path) -> Iterator[Log]:
    """A run of MLflow, wherever MLFLOW_TRACKING_URI points."""
    mlflow = _need("mlflow")
    with mlflow.start_run(run_name=folder.name):
        mlflow.log_params(_settings(experiment))
        yield lambda index, figures: mlflow.log_metrics(dict(figures), step=index)


@contextmanager
def _wandb(experiment: Experiment, folder: Path) -> Iterator[Log]:
    """A run of Weights & Biases; WANDB_MODE=offline keeps it on this machine."""
    wandb = _need("wandb")
    run = wandb.init(
        project="datadefense", name=folder.name, dir=str(folder), config=_settings(experiment)
    )
    try:
        yield lambda index, figures: run.log(dict(figures), step=index)
    finally:
        run.finish()


TRACKERS = {"tensorboard": _tensorboard, "mlflow": _mlflow, "wandb": _wandb}
"""Trackers by name."""
MODULES = {"tensorboard": "torch.utils.tensorboard", "mlflow": "mlflow", "wandb": "wandb"}


def check(names: Sequence[str]) -> None:
    """Refuse a tracker that is unknown or not installed, before anything is run."""
    for name in names:
        check_choice("log", name, TRACKERS)
        _need(name)


def _settings(experiment: Experiment) -> dict[str, Any]:
    """Return every setting by its key, as ``--set`` takes it: ``attack.epochs``."""
    return flat_settings(document_of(experiment))


def _need(name: str) -> Any:
    try:
        return import_module(MODULES[name])
    except ImportError as error:
        raise SettingsError(f"--log {name} needs it: pip install 'datadefense[{name}]'") from error
