"""A stored run: read from its folder, even if it is unfinished, old or slightly damaged."""

import dataclasses
import math
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from datadefense.core.foreign import message
from datadefense.core.json_file import built, read_json
from datadefense.core.round_files import FileError
from datadefense.defense_sets.preview import Shown, read_gallery
from datadefense.report.conclusion import Figures
from datadefense.report.detector_data import has_opinion
from datadefense.runs.baseline import Floor, cached_floor, read_floor
from datadefense.runs.config import flat_settings, read_toml
from datadefense.runs.files import (
    CONFIG,
    FLOOR,
    GALLERY,
    ROUNDS,
    SUMMARY,
    rounds_so_far,
)
from datadefense.runs.ground_truth import poisoned_ids
from datadefense.runs.summary import Summary, success_rates, summarise
from datadefense.simulation.rounds import RoundRecord


@dataclass(frozen=True, slots=True)
class StoredRun:
    """A run as it was found.

    Args:
        name: of its folder.
        config: the text of its configuration; empty if there is none.
        choices: the settings that could be read, by key (``task``, ``federation.rounds``).
        records: its rounds.
        figures: its summary, or as much of it as the rounds tell; None if none was evaluated.
        floor: what fedavg scores without attack, if that is known.
        gallery: what its defense set looks like, if that was kept.
        notes: what is missing or odd, in sentences for people.
    """

    name: str
    config: str
    choices: Mapping[str, Any]
    records: Sequence[RoundRecord]
    figures: Figures | None
    floor: Floor | None
    gallery: Sequence[Shown] | None
    notes: Sequence[str]


def read_run(folder: Path) -> StoredRun:
    """Read a run from its folder; only the rounds must be there."""
    records, notes = _records(folder)
    config, choices = _config(folder, notes)
    gallery = read_gallery(folder / GALLERY)
    if gallery is None and any(map(has_opinion, records)):
        notes.append(
            f"There is no readable {GALLERY} in the folder: what the examples look like, and which "
            "of them are known clean or poisoned, cannot be shown."
        )
    floor = _floor(folder, notes)
    figures = _stored_figures(folder, records, floor, notes)
    if figures is None:
        figures = _computed_figures(folder, records, floor, gallery or ())
        wanted, done = choices.get("federation.rounds"), len(records)
        if isinstance(wanted, int) and done < wanted:
            notes.insert(0, f"This run is not finished: {done} of {wanted} rounds are there.")
        elif figures is None or figures["asr_floor_percent"] is None:
            notes.insert(0, f"This run is not finished: there is no {SUMMARY} yet.")
    name = folder.resolve().name
    notes += weakened(records)
    return StoredRun(name, config, choices, records, figures, floor, gallery, notes)


def _records(folder: Path) -> tuple[list[RoundRecord], list[str]]:
    """Return the rounds, and a note if the last line is only a part of one."""
    if not folder.is_dir():
        raise FileError(f"{folder} is not a folder")
    if not (folder / ROUNDS).is_file():
        raise FileError(f"{folder} holds no run: there is no {ROUNDS}")
    records, cut_off = rounds_so_far(folder)
    if not cut_off:
        return records, []
    return records, [f"The last line of {ROUNDS} was cut off and is left out."]


def _config(folder: Path, notes: list[str]) -> tuple[str, dict[str, Any]]:
    """Return the configuration as text, and what could be read of it."""
    try:
        text = (folder / CONFIG).read_text(encoding="utf-8")
        return text, flat_settings(tomllib.loads(text))
    except (OSError, ValueError, RecursionError) as error:
        notes.append(f"{CONFIG} is missing or damaged: {type(error).__name__}.")
        return "", {}


def _floor(folder: Path, notes: list[str]) -> Floor | None:
    """Return the floor that the run has stored, or the one in the cache."""
    stored = read_floor(folder / FLOOR)
    if stored is not None:
        return stored
    if (folder / FLOOR).exists():
        notes.append(f"{FLOOR} is damaged and is left out.")
    try:
        return read_floor(cached_floor(read_toml(folder / CONFIG)))
    except (ValueError, OSError):
        return None


def _stored_figures(
    folder: Path, records: Sequence[RoundRecord], floor: Floor | None, notes: list[str]
) -> Figures | None:
    """Return the summary, if it is there, whole, and of these rounds.

    Accuracy without an attack, which older ones do not have, is taken from the floor.
    """
    try:
        summary = read_json(folder / SUMMARY, partial(built, Summary))
    except FileNotFoundError:
        return None
    except (OSError, FileError) as error:
        notes.append(f"The figures are computed from the rounds: {message(error)}.")
        return None
    figures = _plain(summary)
    if figures["calm_ma_percent"] is None and floor is not None:
        figures["calm_ma_percent"] = floor.ma_percent
    return figures if records and summary.rounds == records[-1].round else None


def _computed_figures(
    folder: Path,
    records: Sequence[RoundRecord],
    floor: Floor | None,
    gallery: Sequence[Shown],
) -> Figures | None:
    """Return the figures as the rounds tell them; without the floor where that is not known."""
    poisoned = poisoned_ids((example.id, example.provenance) for example in gallery)
    if not success_rates(records) or all(record.ma_percent is None for record in records):
        return None
    try:
        experiment = read_toml(folder / CONFIG)
    except (ValueError, OSError):
        return None
    return _plain(summarise(experiment, records, floor or Floor(math.nan), poisoned, None))


def _plain(summary: Summary) -> dict[str, Any]:
    """Return a summary by name, with None for what is not a number."""
    return {
        name: None if isinstance(value, float) and not math.isfinite(value) else value
        for name, value in dataclasses.asdict(summary).items()
    }


def weakened(records: Sequence[RoundRecord]) -> list[str]:
    """Say in how many rounds a defense lacked what it is good for, and what that was."""
    said = [str(record.report["weakened"]) for record in records if "weakened" in record.report]
    if not said:
        return []
    return [f"In {len(said)} of {len(records)} rounds the defense was weakened: {said[-1]}."]
