"""What the paper reports: every number of its tables, by study and labels."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Published:
    """The numbers of one table: where they stand, and accuracy and success rate by labels."""

    source: str
    figures: Mapping[tuple[str, ...], tuple[float, float]]


def published(study: str) -> Published | None:
    """Return what the paper has for a study; None if nothing."""
    text = files("datadefense.reproduction").joinpath("paper.json").read_text(encoding="utf-8")
    table = json.loads(text).get(study)
    if table is None:
        return None
    figures = {
        tuple(run["labels"]): (run["ma_percent"], run["asr_percent"]) for run in table["runs"]
    }
    return Published(table["source"], figures)
