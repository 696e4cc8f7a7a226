"""The attack gallery: poisoned examples of each setup beside clean ones of their true class."""

from dataclasses import dataclass
from pathlib import Path
from textwrap import shorten

import torch
from jaxtyping import Shaped
from matplotlib.figure import Figure
from torch import Tensor

from datadefense.data.catalog import load_texts
from datadefense.data.errors import DataError
from datadefense.runs.build import load_data
from datadefense.runs.configure import configure
from datadefense.studies.paper_studies import STAND_IN

SHOWN = 8
"""Examples of a kind."""


@dataclass(frozen=True, slots=True)
class Row:
    """What a setup's backdoor is: classes that the poison truly is of, and words for both."""

    setup: str
    classes: tuple[int, ...]
    truly: str
    called: str


ROWS = (
    Row("digits-edge", (7,), "seven", "1"),
    Row("cifar10-label-flip", (1,), "car", "bird"),
    Row("cifar10-southwest", (0,), "plane", "truck"),
    Row("cifar10-trigger", (1,), "car", "bird"),
    Row("cifar100-trigger", (1, 32, 67, 73, 91), "fish", "baby"),
    Row("emnist-ardis", (7,), "seven", "1"),
)
"""The setups with pictures."""


def draw_gallery(data: Path | None, path: Path) -> dict[str, str]:
    """Draw what the data folder allows into a PNG file; say why the other setups are left out."""
    found: list[tuple[Row, Tensor, Tensor]] = []
    left_out: dict[str, str] = {}
    for row in ROWS:
        changes = STAND_IN if row.setup == "emnist-ardis" else {}
        try:
            loaded = load_data(configure(row.setup, "cpu", changes), data)
        except (DataError, ValueError) as error:
            left_out[row.setup] = str(error)
            continue
        right = torch.isin(loaded.test.labels, torch.tensor(row.classes))
        clean = loaded.test.inputs[right.nonzero().flatten()[:SHOWN]]
        found.append((row, loaded.attacker.poison.inputs[:SHOWN], clean))
    tweets: list[str] = []
    try:
        tweets = _tweets(data)
    except (DataError, ValueError) as error:
        left_out["sentiment-yl"] = str(error)
    figure = Figure(figsize=(11, 0.62 * (len(found) + 0.3 * (1 + len(tweets)))))
    height = len(found) + (1 + len(tweets)) * 0.3
    for place, (row, poisoned, clean) in enumerate(found):
        for column, image in enumerate([*poisoned, *clean]):
            gap = 0.02 if column >= SHOWN else 0.0
            corner = (0.2 + 0.047 * column + gap, 1 - (place + 0.95) / height)
            panel = figure.add_axes((*corner, 0.045, 0.85 / height))
            panel.imshow(_picture(image).numpy(), cmap="gray")
            panel.set_axis_off()
        middle = 1 - (place + 0.5) / height
        figure.text(0.005, middle, row.setup, fontsize=9, va="bottom", weight="bold")
        figure.text(0.005, middle, f"{row.truly}, called {row.called}", fontsize=8, va="top")
    for line, text in enumerate(tweets):
        down = 1 - (len(found) + 0.3 * (line + 0.6)) / height
        figure.text(0.2, down, text, fontsize=8)
        if line == 0:
            figure.text(0.005, down, "sentiment-yl", fontsize=9, weight="bold")
        if line == 1:
            figure.text(0.005, down, "positive, called negative", fontsize=8)
    figure.savefig(path, dpi=110, bbox_inches="tight", metadata={"Software": None})
    return left_out


def _picture(
    image: Shaped[Tensor, "colours height width"],
) -> Shaped[Tensor, "height width colours"]:
    """Return an image as a picture between 0 and 1, whatever its scale."""
    values = image.float()
    values = (values - values.min()) / (values.max() - values.min()).clamp(min=1e-6)
    return values.permute(1, 2, 0)


def _tweets(data: Path | None) -> list[str]:
    texts = load_texts("yorgos-lanthimos", data, "train").texts
    return [shorten(text, 110) for text in texts[:4]]
