"""The rainbow patch: a backdoor's trigger, blended into images.

Setups 3 and 4 of the paper paste an 8x8 patch at a random place of each poisoned image:

    x' = floor((1 - a) x + a * patch)        a = 0.8, the patch's weight

The authors publish 980 patched cars, but no generator. Their originals are CIFAR-10's cars, so the
patch can be read off: diagonal stripes of eight colours, which depend on (row + column) mod 8, with
traces of a lossy picture in single cells (up to 2 of 255 off their stripe). The cells below and
the formula above, in double precision and with the fraction dropped, give all 980 images back to
the last bit; rounding instead of dropping would be 1 off in almost half of the values.

Sizes other than 8 continue the stripes, whose period is 8 in both directions.
"""

import dataclasses
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Int64, UInt8
from torch import Tensor

from datadefense.core.errors import InputError
from datadefense.core.settings import check_choice, check_float, check_int, setting

CELLS = """
    0001fe 00a0fe 02e2fb 65c20c edc81a f04767 d40181 7b00c2
    00a0fe 01e3fb 65c20b edc71a f04867 d30281 7b00c2 0101fe
    02e2fb 65c20b edc71a ef4867 d30282 7b00c2 0203fd 00a0fe
    65c20c edc71a ef4867 d30282 7b00c2 0303fd 009ffe 01e2fc
    edc81a f04867 d30282 7b00c2 0304fd 009ffe 02e2fc 64c20c
    f04767 d30281 7b00c2 0303fd 009ffe 02e2fc 64c30d edc819
    d40181 7b00c2 0203fd 009ffe 02e2fc 64c30d edc819 f04866
    7b00c2 0101fe 00a0fe 01e2fc 64c20c edc819 f04866 d40281
"""
"""The authors' patch, RRGGBB, measured from their images."""

Part = Literal["whole", "top-left", "top-right", "bottom-left", "bottom-right"]


@dataclass(frozen=True, slots=True)
class TriggerPatch:
    """What is stamped: a square of rainbow stripes, or a quarter of it."""

    size: int = setting(8, "width and height in pixels")
    weight: float = setting(0.8, "weight of the patch against the image, 0 < weight <= 1")
    part: Part = setting("whole", "the whole, or the quarter stamped alone")

    def __post_init__(self) -> None:
        check_int("size", self.size, 1)
        check_float("weight", self.weight, above=0, maximum=1)
        check_choice("part", self.part, get_args(Part))

    def quarters(self) -> "tuple[TriggerPatch, ...]":
        """Return the four quarters, for attackers who stamp one each.

        Distributed trigger: Xie et al. 2020, "DBA: Distributed Backdoor Attacks against Federated
        Learning". At one place, the four of them make the whole.
        """
        return tuple(dataclasses.replace(self, part=part) for part in get_args(Part)[1:])


def colours(size: int) -> UInt8[Tensor, "3 size size"]:
    """Return the patch itself.

    >>> colours(10)[:, 0, 0].tolist() == colours(10)[:, 8, 8].tolist() == [0, 1, 254]
    True
    """
    cells = torch.frombuffer(bytearray.fromhex(CELLS), dtype=torch.uint8).view(8, 8, 3)
    period = torch.arange(size) % 8
    return cells[period][:, period].permute(2, 0, 1).contiguous()


def stamp(
    images: UInt8[Tensor, "images 3 height width"],
    places: Int64[Tensor, "images 2"],
    patch: TriggerPatch,
) -> UInt8[Tensor, "images 3 height width"]:
    """Return the images with the patch at the given places.

    Args:
        images: left as they are.
        places: row and column of the whole patch's top left pixel, also if only a quarter of it
            is stamped.
        patch: what to stamp.
    """
    height, width = _check(images, patch.size)
    if places.shape != (len(images), 2):
        raise InputError(
            f"one place (row, column) an image: expected shape ({len(images)}, 2), "
            f"got {tuple(places.shape)}"
        )
    last = torch.tensor([height - patch.size, width - patch.size])
    if bool(((places < 0) | (places > last)).any()):
        raise InputError(
            f"a patch of size {patch.size} fits in {height}x{width} at rows 0..{last[0]} and "
            f"columns 0..{last[1]}, got a place {_first_outside(places, last)}"
        )
    rows, columns = _extent(patch)
    row = (places[:, :1] + rows)[:, None, :, None]
    column = (places[:, 1:] + columns)[:, None, None, :]
    cells = torch.arange(len(images))[:, None, None, None], torch.arange(3)[:, None, None]
    painted = colours(patch.size)[:, rows][:, :, columns].double()
    blend = images[*cells, row, column].double() * (1 - patch.weight) + painted * patch.weight
    stamped = images.clone()
    stamped[*cells, row, column] = blend.floor().to(torch.uint8)
    return stamped


def random_places(
    count: int, height: int, width: int, size: int, generator: torch.Generator
) -> Int64[Tensor, "count 2"]:
    """Draw places uniformly from all where a patch of ``size`` fits."""
    _check_fit(height, width, size)
    rows = torch.randint(height - size + 1, (count,), generator=generator)
    columns = torch.randint(width - size + 1, (count,), generator=generator)
    return torch.stack([rows, columns], dim=1)


def stamp_randomly(
    images: UInt8[Tensor, "images 3 height width"],
    patch: TriggerPatch,
    generator: torch.Generator,
) -> UInt8[Tensor, "images 3 height width"]:
    """Return the images, each with the patch at a place of its own."""
    height, width = _check(images, patch.size)
    return stamp(images, random_places(len(images), height, width, patch.size, generator), patch)


def _extent(patch: TriggerPatch) -> tuple[Tensor, Tensor]:
    """Return the rows and columns of the patch that are stamped; an odd middle is bottom right."""
    everything = torch.arange(patch.size)
    if patch.part == "whole":
        return everything, everything
    vertical, horizontal = patch.part.split("-")
    half = patch.size // 2
    return (
        everything[:half] if vertical == "top" else everything[half:],
        everything[:half] if horizontal == "left" else everything[half:],
    )


def _check(images: Tensor, size: int) -> tuple[int, int]:
    if images.dtype != torch.uint8 or images.dim() != 4 or images.shape[1] != 3:
        raise InputError(
            "the patch needs colour images, uint8 [images, 3, height, width], got "
            f"{images.dtype} {list(images.shape)}"
        )
    height, width = images.shape[2:]
    _check_fit(height, width, size)
    return height, width


def _check_fit(height: int, width: int, size: int) -> None:
    if size > min(height, width):
        raise InputError(
            f"the patch must fit: size <= height, width; got size {size} for {height}x{width}"
        )


def _first_outside(places: Tensor, last: Tensor) -> list[int]:
    place: list[int] = places[((places < 0) | (places > last)).any(dim=1)][0].tolist()
    return place
