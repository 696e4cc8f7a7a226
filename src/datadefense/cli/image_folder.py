"""A folder of images, read with the size and channels that a data set's images have."""

from pathlib import Path

import torch
from torch import Tensor

from datadefense.data.errors import DataError
from datadefense.data.folder import existing
from datadefense.data.image_files import read_image_file

SUFFIXES = (".png", ".jpg", ".jpeg", ".webp")


def read_images(folder: Path, like: Tensor, whose: str) -> tuple[list[Path], Tensor]:
    """Return the image files of a folder and their pixels, in the form of ``whose`` images."""
    files = sorted(existing(folder).iterdir())
    files = [path for path in files if path.suffix.lower() in SUFFIXES]
    if not files:
        raise DataError(f"{folder} holds no images ({', '.join(SUFFIXES)})")
    return files, torch.stack([_read(path, like, whose) for path in files])


def _read(path: Path, like: Tensor, whose: str) -> Tensor:
    channels, height, width = like.shape[1:]
    image = read_image_file(path, (width, height))
    if channels == 1 and bool((image != image[:1]).any()):
        raise DataError(f"{path} is in colour, the images of {whose} are grey")
    return image[:1].expand(channels, -1, -1) if image.shape[0] != channels else image
