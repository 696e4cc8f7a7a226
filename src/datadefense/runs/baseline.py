"""The baseline: what fedavg scores without attack; measured once and kept in a small file."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from datadefense.core.json_file import built, read_json, to_json
from datadefense.core.round_files import FileError
from datadefense.core.storage import write_text
from datadefense.data.cache import cache_folder
from datadefense.runs.config import Experiment, write_toml


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
        return read_json(path, _floor)
    except (OSError, FileError):
        return None


def _floor(values: Any) -> Floor:
    if type(values) is not dict:
        raise ValueError("it must be an object")
    return built(
        Floor, {name: values[name] for name in ("asr_percent", "ma_percent") if name in values}
    )


def write_floor(path: Path, floor: Floor, experiment: Experiment) -> None:
    """Write a floor, with the configuration that it belongs to."""
    path.parent.mkdir(parents=True, exist_ok=True)
    config = write_toml(experiment.without_attack())
    write_text(path, to_json({**asdict(floor), "config": config}) + "\n")
