"""The gallery: what a run's defense set looks like, kept so that a page can show it later.

A file of small pictures or words, with the label of each example, whether it is known clean and
where it came from. The page of a run needs no data set then.
"""

import base64
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from jaxtyping import UInt8
from torch import Tensor

from datadefense.core.defense_set import DefenseSet
from datadefense.core.json_file import built, read_json, to_json
from datadefense.core.round_files import FileError
from datadefense.core.storage import write_text
from datadefense.data.errors import DataError
from datadefense.data.image_files import to_png
from datadefense.data.text import Vocabulary

logger = logging.getLogger(__name__)
LARGEST = 64
"""Pixels of a picture's longer side, about; larger ones are thinned out."""


@dataclass(frozen=True, slots=True)
class Shown:
    """One example as a page shows it: a picture (PNG in base64), a text, or neither."""

    id: str
    label: int
    known_clean: bool
    provenance: str
    picture: str | None = None
    text: str | None = None


def gallery_of(defense_set: DefenseSet, vocabulary: Vocabulary | None = None) -> list[Shown]:
    """Return every example of a defense set as it can be shown."""
    inputs, count = defense_set.examples.inputs, len(defense_set)
    pictures: Sequence[str | None] = [None] * count
    texts: Sequence[str | None] = [None] * count
    if inputs.ndim == 4 and inputs.shape[1] in (1, 3):
        pictures = _pictures(inputs)
    elif inputs.ndim == 2 and not inputs.is_floating_point():
        texts = _texts(inputs, vocabulary)
    return [
        Shown(*facts)
        for facts in zip(
            defense_set.ids,
            defense_set.examples.labels.tolist(),
            defense_set.known_clean.tolist(),
            defense_set.provenance,
            pictures,
            texts,
            strict=True,
        )
    ]


def write_gallery(path: Path, gallery: Sequence[Shown]) -> None:
    """Write a gallery as JSON."""
    write_text(path, to_json([asdict(shown) for shown in gallery]) + "\n")


def read_gallery(path: Path) -> list[Shown] | None:
    """Read a gallery; None if it is absent or damaged."""
    try:
        return read_json(path, lambda values: [built(Shown, entry) for entry in values])
    except (OSError, FileError):
        return None


def _pictures(inputs: Tensor) -> Sequence[str | None]:
    """Return images as PNG in base64, or nothing where there is no library for that."""
    step = max(1, max(inputs.shape[2:]) // LARGEST)
    small = _pixels(inputs[:, :, ::step, ::step])
    try:
        return [base64.b64encode(to_png(image)).decode() for image in small]
    except DataError as error:
        logger.warning("the report will have no pictures: %s", error)
        return [None] * len(inputs)


def _pixels(images: Tensor) -> UInt8[Tensor, "n channels height width"]:
    """Return images as pixels; those that are normalised are brought between 0 and 255."""
    if images.dtype == torch.uint8:
        return images
    low, high = float(images.min()), float(images.max())
    return ((images - low) * (255 / max(high - low, 1e-12))).round().to(torch.uint8)


def _texts(tokens: Tensor, vocabulary: Vocabulary | None) -> list[str]:
    if vocabulary is not None:
        return vocabulary.decode(tokens)
    return [" ".join(str(number) for number in row if number) for row in tokens.tolist()]
