"""Synthetic triggers: marks of several kinds, known from the literature, on clean images.

- *solid*: a square of one colour (Gu et al. 2017, "BadNets");
- *checkerboard*: a square of black and white cells (the same);
- *blended*: noise over the whole image, x' = (1 - a) x + a n (Chen et al. 2017, "Targeted Backdoor
  Attacks on Deep Learning Systems Using Data Poisoning");
- *warped*: the image bent a little by a smooth field (Nguyen and Tran 2021, "WaNet").

Kinds take turns; colours, sizes, places, weights and fields are drawn anew for each image.
"""

from collections.abc import Callable, Mapping, Sequence

import torch
from jaxtyping import UInt8
from torch import Tensor
from torch.nn.functional import grid_sample, interpolate

from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError
from datadefense.defense_sets.suggestions.candidates import Candidates
from datadefense.defense_sets.suggestions.relabelled import relabelled

Image = UInt8[Tensor, "channels height width"]
COLOURS = ((255, 255, 255), (0, 0, 0), (255, 0, 0), (0, 255, 0), (0, 0, 255), (255, 255, 0))
GREYS = ((255,), (0,), (128,))
SMALLEST_SHARE, LARGEST_SHARE = 8, 3
"""A square's side is from an eighth to a third of the image's shorter side."""
CELL = 2
"""Width and height of a checkerboard's cell in pixels."""
WEIGHTS = (0.1, 0.2, 0.3)
"""Weights of noise that is blended in."""
KNOTS, BEND = 4, 0.15
"""A field is drawn at 4x4 knots; at most, it moves a pixel by this share of half a side."""


def triggers(
    clean: Examples,
    sources: Sequence[int] | None,
    targets: Sequence[int],
    count: int,
    draw: torch.Generator,
) -> Candidates:
    """Return clean images with a synthetic trigger each, labelled with a target.

    As `relabelled`, and then kinds of triggers take turns: a target with at least four candidates
    has all of them.
    """
    check_images(clean.inputs, "triggers")
    plain = relabelled(clean, sources, targets, count, draw)
    images: list[Tensor] = []
    origins: list[str] = []
    for place, image in enumerate(plain.examples.inputs):
        kind = tuple(KINDS)[place % len(KINDS)]
        images.append(KINDS[kind](image, draw))
        origins.append(f"{kind} on {plain.origins[place]}")
    return Candidates(Examples(torch.stack(images), plain.examples.labels), tuple(origins))


def check_images(inputs: Tensor, method: str) -> None:
    """Refuse what is not pixels, or too small for a square with anything beside it."""
    if inputs.ndim != 4 or inputs.dtype != torch.uint8 or inputs.shape[1] not in (1, 3):
        raise SettingsError(
            f"{method} needs images, uint8 [n, 1 or 3, height, width], got {inputs.dtype} "
            f"{list(inputs.shape)}"
        )
    if min(inputs.shape[2:]) < SMALLEST_SHARE:
        raise SettingsError(
            f"{method} needs images of at least {SMALLEST_SHARE}x{SMALLEST_SHARE} pixels, got "
            f"{list(inputs.shape[2:])}"
        )


def solid(image: Image, draw: torch.Generator) -> Image:
    """Return the image with a square of one colour at any place where it fits."""
    choices = GREYS if image.shape[0] == 1 else COLOURS
    colour = torch.tensor(choices[_below(len(choices), draw)], dtype=torch.uint8)
    row, column, side = _square(image, draw)
    painted = image.clone()
    painted[:, row : row + side, column : column + side] = colour[:, None, None]
    return painted


def checkerboard(image: Image, draw: torch.Generator) -> Image:
    """Return the image with a square of black and white cells at any place where it fits."""
    row, column, side = _square(image, draw)
    cells = torch.arange(side) // CELL
    board = ((cells[:, None] + cells) % 2 * 255).to(torch.uint8)
    painted = image.clone()
    painted[:, row : row + side, column : column + side] = board
    return painted


def blended(image: Image, draw: torch.Generator) -> Image:
    """Return the image with noise over all of it."""
    weight = WEIGHTS[_below(len(WEIGHTS), draw)]
    noise = torch.randint(256, image.shape, generator=draw).double()
    return ((1 - weight) * image.double() + weight * noise).floor().to(torch.uint8)


def warped(image: Image, draw: torch.Generator) -> Image:
    """Return the image bent by a smooth field; what comes from outside repeats the border."""
    height, width = image.shape[1:]
    knots = 2 * torch.rand((1, 2, KNOTS, KNOTS), generator=draw, dtype=torch.float64) - 1
    knots = BEND * knots / knots.abs().max()
    field = interpolate(knots, size=(height, width), mode="bilinear", align_corners=True)
    return bend(image, field[0])


def bend(image: Image, field: Tensor) -> Image:
    """Return the image whose pixel (r, c) comes from (r, c) moved by the field, interpolated.

    Args:
        image: pixels.
        field: [2, height, width], columns then rows, in halves of a side.
    """
    height, width = image.shape[1:]
    rows = torch.linspace(-1, 1, height, dtype=torch.float64)
    columns = torch.linspace(-1, 1, width, dtype=torch.float64)
    still = torch.stack([columns.expand(height, width), rows[:, None].expand(height, width)], 2)
    grid = (still + field.permute(1, 2, 0)).clamp(-1, 1)
    moved = grid_sample(image[None].double(), grid[None], padding_mode="border", align_corners=True)
    return moved[0].round().clamp(0, 255).to(torch.uint8)


KINDS: Mapping[str, Callable[[Image, torch.Generator], Image]] = {
    "solid": solid,
    "checkerboard": checkerboard,
    "blended": blended,
    "warped": warped,
}
"""The kinds by name, in the order in which they take turns."""


def _square(image: Tensor, draw: torch.Generator) -> tuple[int, int, int]:
    """Draw row, column and side of a square that fits."""
    height, width = image.shape[1:]
    shorter = min(height, width)
    least = shorter // SMALLEST_SHARE
    side = least + _below(shorter // LARGEST_SHARE - least + 1, draw)
    return _below(height - side + 1, draw), _below(width - side + 1, draw), side


def _below(bound: int, draw: torch.Generator) -> int:
    return int(torch.randint(bound, (), generator=draw))
