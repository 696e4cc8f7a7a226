"""What the paper reports: every number of its tables and of its words on figures, by study."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files


@dataclass(frozen=True, slots=True)
class Published:
    """One table or figure: where it stands, its numbers or what the paper says of it.

    ``figures`` has accuracy and success rate by labels. Of the paper's pictures only words are
    known, ``says``.
    """

    source: str
    figures: Mapping[tuple[str, ...], tuple[float, float]]
    says: str = ""


def published(study: str) -> Published | None:
    """Return what the paper has for a study; None if nothing."""
    text = files("datadefense.studies").joinpath("paper.json").read_text(encoding="utf-8")
    table = json.loads(text).get(study)
    if table is None:
        return None
    figures = {
        tuple(run["labels"]): (run["ma_percent"], run["asr_percent"]) for run in table["runs"]
    }
    return Published(table["source"], figures, table.get("says", ""))
