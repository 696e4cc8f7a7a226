"""Options that choose an experiment: a task and changes, or a whole configuration."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from datadefense.core.settings import SettingsError
from datadefense.runs.config import Experiment
from datadefense.runs.config_file import configure_by_file
from datadefense.runs.configure import configure


@dataclass(frozen=True, slots=True)
class ExperimentOptions:
    """A task at a scale, or a configuration file, and settings by key."""

    task: str | None
    scale: str | None
    changes: Mapping[str, str]
    config: Path | None = None

    def experiment(self) -> Experiment:
        """Return the experiment; one of the two must be given."""
        if (self.task is None) == (self.config is None):
            raise SettingsError("give either --task or --config")
        if self.config is not None:
            if self.scale is not None:
                raise SettingsError("--scale does not go with --config: the file has its own")
            return configure_by_file(self.config, self.changes)
        return configure(self.task or "", self.scale or "cpu", self.changes)
