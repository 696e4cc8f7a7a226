"""What a page needs of the detector: suspicion of each example by round, the marks, and the set.

On the page the suspicion is called gamma, as in the paper.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datadefense.defense_sets.folder import CLEAN, POISONED
from datadefense.defense_sets.preview import Shown
from datadefense.report.downsample import shown_rounds
from datadefense.report.packing import pack_bits, pack_levels, rounded
from datadefense.runs.ground_truth import is_poisoned
from datadefense.simulation.rounds import RoundRecord

TRUTHS: Mapping[str, int] = {CLEAN: 1, POISONED: 2}
"""Numbers for what is known of an example's origin; 0 is nothing."""
QUANTILES = (0.1, 0.5, 0.9)
"""Of gamma in a part of the set, by round."""


def detector_data(
    records: Sequence[RoundRecord],
    gallery: Sequence[Shown] | None,
    most_values: int,
    pictures: list[str],
) -> dict[str, Any] | None:
    """Return suspicion and marks as plain values, or None where no round has any.

    Args:
        records: the rounds.
        gallery: what the examples look like, if that was kept.
        most_values: how many values of gamma in all a page can hold.
        pictures: those of the page so far; new ones are added, each once.
    """
    judged = [record for record in records if has_opinion(record)]
    if not judged:
        return None
    ids = _ids(judged, gallery)
    count = len(ids)
    if gallery is not None and [example.id for example in gallery] != ids:
        gallery = None
    shown = shown_rounds(judged, most_values // count)
    scores = np.stack([_scores(record, ids) for record in shown])
    marks = np.stack([_marks(record, ids) for record in judged])
    last = {record.round: row for row, record in enumerate(judged)}
    low, high = min(0.0, _least(scores)), max(1.0, -_least(-scores))
    return {
        "rounds": [record.round for record in shown],
        "count": count,
        "low": low,
        "high": high,
        "gamma": pack_levels(scores, low, high),
        "marked": pack_bits(marks[[last[record.round] for record in shown]]),
        "final": rounded(_scores(judged[-1], ids)),
        "share": [round(100 * float(share)) for share in marks.mean(0)],
        "examples": None if gallery is None else _examples(gallery, pictures),
        "bands": {
            name: [rounded(line, 3) for line in bands(scores[:, chosen])]
            for name, chosen in parts(gallery, count).items()
        },
    }


def parts(gallery: Sequence[Shown] | None, count: int) -> dict[str, NDArray[np.bool_]]:
    """Return which examples are in which part of the set; parts without any are left out."""
    if gallery is None:
        return {"all": np.ones(count, dtype=bool)}
    known = np.array([example.known_clean for example in gallery])
    poisoned = np.array([is_poisoned(example.provenance) for example in gallery])
    found = {
        "poisoned": poisoned,
        "others": ~known & ~poisoned,
        "known clean": known & ~poisoned,
    }
    return {name: chosen for name, chosen in found.items() if chosen.any()}


def bands(scores: NDArray[np.float64]) -> list[list[float]]:
    """Return the tenth, the median and the ninetieth percentile of each row, a list each."""
    present = ~np.isnan(scores).all(1)
    lines = np.full((len(QUANTILES), len(scores)), math.nan)
    lines[:, present] = np.nanquantile(scores[present], QUANTILES, axis=1)
    return [[float(value) for value in line] for line in lines]


def has_opinion(record: RoundRecord) -> bool:
    """Say whether a detector has judged any example in a round."""
    return record.detector is not None and bool(record.detector.suspicion)


def _ids(records: Sequence[RoundRecord], gallery: Sequence[Shown] | None) -> list[str]:
    """Return the examples that were judged: in the order of the gallery, if it has all of them."""
    opinions = [record.detector.suspicion for record in records if record.detector is not None]
    judged = list(dict.fromkeys(example_id for opinion in opinions for example_id in opinion))
    known = [example.id for example in gallery or ()]
    return known if set(judged) <= set(known) else judged


def _scores(record: RoundRecord, ids: Sequence[str]) -> NDArray[np.float64]:
    said = {} if record.detector is None else record.detector.suspicion
    row = np.array([said.get(example_id) for example_id in ids], dtype=float)
    return np.where(np.isfinite(row), row, math.nan)


def _marks(record: RoundRecord, ids: Sequence[str]) -> NDArray[np.bool_]:
    marked = set() if record.detector is None else set(record.detector.marked)
    return np.array([example_id in marked for example_id in ids], dtype=bool)


def _least(scores: NDArray[np.float64]) -> float:
    return 0.0 if np.isnan(scores).all() else float(np.nanmin(scores))


def _examples(gallery: Sequence[Shown], pictures: list[str]) -> dict[str, Any]:
    """Return the set column by column; a picture is the place of one among ``pictures``."""
    places = {picture: place for place, picture in enumerate(pictures)}
    for example in gallery:
        if example.picture is not None and example.picture not in places:
            places[example.picture] = len(pictures)
            pictures.append(example.picture)
    return {
        "id": [example.id for example in gallery],
        "label": [example.label for example in gallery],
        "known": [int(example.known_clean) for example in gallery],
        "truth": [TRUTHS.get(example.provenance, 0) for example in gallery],
        "origin": [
            "" if example.provenance in TRUTHS else example.provenance for example in gallery
        ],
        "picture": [
            None if example.picture is None else places[example.picture] for example in gallery
        ],
        "text": [example.text for example in gallery],
    }
