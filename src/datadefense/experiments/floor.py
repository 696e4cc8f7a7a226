"""The floor: what fedavg scores when nobody attacks; measured once and kept in a small file."""

import json
from dataclasses import asdict, dataclass
from pathlib import Path

from datadefense.data.cache import cache_folder
from datadefense.experiments.experiment import Experiment, write_toml
from datadefense.storage import write_text


@dataclass(frozen=True, slots=True)
class Floor:
    """Success rate and accuracy of the calm run; old files do not have the accuracy."""

    asr_percent: float
    ma_percent: float | None = None


def cached_floor(experiment: Experiment) -> Path:
    """Return where the floor of an experiment is kept for all that share it."""
    return cache_folder() / "floors" / f"{experiment.without_attack().key()}.json"


def read_floor(path: Path) -> Floor | None:
    """Read a floor; None if it is absent or broken."""
    try:
        values = json.loads(path.read_text(encoding="utf-8"))
        accuracy = values.get("ma_percent")
        return Floor(float(values["asr_percent"]), None if accuracy is None else float(accuracy))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def write_floor(path: Path, floor: Floor, experiment: Experiment) -> None:
    """Write a floor, with the configuration that it belongs to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    config = write_toml(experiment.without_attack())
    write_text(path, json.dumps({**asdict(floor), "config": config}) + "\n")
