"""The data folder: which one it is, and which files in it are a part of a data set."""

import itertools
import os
from pathlib import Path

from datadefense.data.dataset import Dataset, FileLayout, Reader, Split
from datadefense.data.errors import DataError


def data_folder(data_dir: Path | None) -> Path | None:
    """Return the given folder, else DATADEFENSE_DATA, else None; raise if it is not there."""
    chosen = os.environ.get("DATADEFENSE_DATA")
    folder = data_dir or (Path(chosen).expanduser() if chosen else None)
    return existing(folder) if folder else None


def existing(folder: Path) -> Path:
    """Return the folder, or raise if it is not one."""
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    return folder


def locate(
    dataset: Dataset, folder: Path, split: Split, layouts: tuple[FileLayout, ...] | None = None
) -> tuple[Reader, tuple[Path, ...]] | None:
    """Return the reader and the files of one split, in the first layout the folder holds it in."""
    for layout in dataset.layouts if layouts is None else layouts:
        if files := files_of(layout, folder, split):
            return layout.read, files
    return None


def files_of(layout: FileLayout, folder: Path, split: Split) -> tuple[Path, ...]:
    """Return the files of one split in one layout, () if it is absent; raise if incomplete."""
    patterns = layout.files[split]
    for place in itertools.chain.from_iterable(_places(folder, name) for name in layout.folders):
        found = {pattern: sorted(place.glob(pattern)) for pattern in patterns}
        if not any(found.values()):
            continue
        if missing := [pattern for pattern, paths in found.items() if not paths]:
            raise DataError(f"{place} is incomplete: {', '.join(missing)} is missing")
        if "-of-" in patterns[0]:
            return _shards(place, found[patterns[0]])
        return tuple(paths[0] for paths in found.values())
    return ()


def absence(
    dataset: Dataset, folder: Path | None, split: Split, layouts: tuple[FileLayout, ...]
) -> str:
    """Return that one split is not in the folder, and where it was looked for."""
    places = " or ".join(layout.describe(split) for layout in layouts)
    if folder is None:
        return f"no data folder: give one (or set DATADEFENSE_DATA) that holds {places}"
    return f"the {split} part of {dataset.name} is not in {folder}: looked for {places}"


def _places(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern)) if "*" in pattern else [folder / pattern]


def _shards(place: Path, paths: list[Path]) -> tuple[Path, ...]:
    total = paths[0].stem.rpartition("-of-")[2]
    if not total.isdecimal() or int(total) != len(paths):
        raise DataError(f"{place} is incomplete: {len(paths)} of the files {paths[0].name} ...")
    return tuple(paths)
