"""The catalog of data sets: load them by name, look at what a folder holds, convert them.

A set is looked for in a data folder, as parquet first and in its official format next, and then, if
the folder has nothing of it, on the Hugging Face hub at a pinned revision.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch

from datadefense.core.examples import Examples
from datadefense.core.settings import suggest
from datadefense.data.dataset import PARQUET, SPLITS, Data, Dataset, FileLayout, Split, Texts
from datadefense.data.datasets import DATASETS
from datadefense.data.digests import digest
from datadefense.data.errors import DataError, refusing
from datadefense.data.folder import absence, data_folder, existing, files_of, locate
from datadefense.data.hub import download
from datadefense.data.parquet import count_rows, write_images, write_texts
from datadefense.data.sentiment140 import POSITIVE


@dataclass(frozen=True, slots=True)
class Finding:
    """What a data folder holds of a set; ``problem`` is None if that is as it should be."""

    name: str
    layout: str | None
    counts: Mapping[Split, int]
    edition: str | None
    problem: str | None
    digests: Mapping[Split, str] = field(default_factory=dict)

    @property
    def ok(self) -> bool:
        """Return whether the set is there and sound."""
        return self.layout is not None and self.problem is None


def load(
    name: str,
    data_dir: Path | None,
    split: Split,
    *,
    duplicates: Literal["drop", "keep"] = "drop",
) -> Data:
    """Load one split of a set from a data folder, or from the hub if the folder has none of it.

    Without ``data_dir``, the folder is DATADEFENSE_DATA. Of Southwest's test images, those that are
    also training images (rows 140-143, one photo turned four ways) are left out, unless
    ``duplicates`` is "keep".
    """
    dataset = find_dataset(name)
    folder = data_folder(data_dir)
    located = locate(dataset, folder, split) if folder else None
    read, files = located if located else (dataset.read, download(dataset, folder, split))
    with refusing(f"{files[0]} cannot be read"):
        data = _checked(dataset, files, read(files))
    unique = dataset.unique_test and split == "test" and duplicates == "drop"
    if not unique or not isinstance(data, Examples):
        return data
    return _without(data, load_images(name, data_dir, "train"))


def load_images(
    name: str,
    data_dir: Path | None,
    split: Split,
    *,
    duplicates: Literal["drop", "keep"] = "drop",
) -> Examples:
    """Load one split of a set of images, as ``load`` does."""
    data = load(name, data_dir, split, duplicates=duplicates)
    if not isinstance(data, Examples):
        raise DataError(f"{name} holds texts, not images")
    return data


def load_texts(name: str, data_dir: Path | None, split: Split) -> Texts:
    """Load one split of a set of texts, as ``load`` does."""
    data = load(name, data_dir, split)
    if not isinstance(data, Texts):
        raise DataError(f"{name} holds images, not texts")
    return data


def find_dataset(name: str) -> Dataset:
    """Return a set of the catalog by its name."""
    if name not in DATASETS:
        raise DataError(f"there is no data set {name!r}{suggest(name, DATASETS)}")
    return DATASETS[name]


def status(data_dir: Path | None) -> list[Finding]:
    """Return what the data folder holds of every set, by counts; pixels are not looked at."""
    return [_find(dataset, data_folder(data_dir), _count) for dataset in DATASETS.values()]


def check(name: str, data_dir: Path | None) -> Finding:
    """Read a set whole, as ``load`` gives it, and compare counts and digests with known editions.

    ``edition`` says which one it is: complete, or which subset.
    """
    digests: dict[Split, str] = {}

    def count(dataset: Dataset, layout: FileLayout, split: Split, files: tuple[Path, ...]) -> int:
        with refusing(f"{files[0]} cannot be read"):
            data = _checked(dataset, files, layout.read(files))
        digests[split] = digest(data)
        return len(data)

    found = _find(find_dataset(name), data_folder(data_dir), count)
    editions = [known for known in DATASETS[name].editions if known.name == found.edition]
    wrong = [
        split
        for known in editions
        for split, expected in known.digests.items()
        if digests.get(split) != expected
    ]
    problem = found.problem or (
        f"the {' and '.join(wrong)} part differs from the known copy ({found.edition})"
        if wrong
        else None
    )
    return Finding(name, found.layout, found.counts, found.edition, problem, digests)


def import_dataset(name: str, source_dir: Path, target_dir: Path) -> tuple[Path, ...]:
    """Convert a set from its official format to parquet: DIR/<folder>/{train,test}.parquet.

    Both splits are read before anything is written; each file appears whole or not at all.
    """
    dataset = find_dataset(name)
    source = existing(source_dir)
    parts: dict[Split, Data] = {}
    for split in SPLITS:
        located = locate(dataset, source, split, dataset.official)
        if located is None:
            raise DataError(absence(dataset, source, split, dataset.official))
        with refusing(f"{located[1][0]} cannot be read"):
            parts[split] = _checked(dataset, located[1], located[0](located[1]))
    written: list[Path] = []
    for split, data in parts.items():
        path = target_dir / dataset.folder / f"{split}.parquet"
        _write(path, dataset, data)
        written.append(path)
    return tuple(written)


def _checked(dataset: Dataset, files: Sequence[Path], data: Data) -> Data:
    low, high = int(data.labels.min()), int(data.labels.max())
    if low < 0 or high >= dataset.classes:
        raise DataError(
            f"{files[0]}: labels of {dataset.name} are 0 to {dataset.classes - 1}, "
            f"found {low} to {high}"
        )
    return data


def _without(data: Examples, other: Examples) -> Examples:
    known = {image.tobytes() for image in other.inputs.numpy()}
    new_rows = [at for at, image in enumerate(data.inputs.numpy()) if image.tobytes() not in known]
    return data.take(torch.tensor(new_rows, dtype=torch.int64))


def _count(dataset: Dataset, layout: FileLayout, _split: Split, files: tuple[Path, ...]) -> int:
    if layout.name == PARQUET and dataset.column != "text":
        return count_rows(files)
    with refusing(f"{files[0]} cannot be read"):
        return len(layout.read(files))


def _find(
    dataset: Dataset,
    folder: Path | None,
    count: Callable[[Dataset, FileLayout, Split, tuple[Path, ...]], int],
) -> Finding:
    found: str | None = None
    counts: dict[Split, int] = {}
    if folder is None:
        return Finding(dataset.name, None, counts, None, None)
    try:
        for split in SPLITS:
            for layout in dataset.layouts:
                if files := files_of(layout, folder, split):
                    found = layout.name
                    counts[split] = count(dataset, layout, split, files)
                    break
    except DataError as error:
        return Finding(dataset.name, found, counts, None, str(error))
    if not counts:
        return Finding(dataset.name, None, counts, None, None)
    if missing := [split for split in SPLITS if split not in counts]:
        return Finding(dataset.name, found, counts, None, f"the {missing[0]} part is missing")
    for edition in dataset.editions:
        if edition.counts == counts:
            return Finding(dataset.name, found, counts, edition.name, None)
    known = " or ".join(
        f"{each.counts['train']:,} / {each.counts['test']:,} ({each.name})"
        for each in dataset.editions
    )
    problem = f"{counts['train']:,} / {counts['test']:,} examples, expected {known}"
    return Finding(dataset.name, found, counts, None, problem)


def _write(path: Path, dataset: Dataset, data: Data) -> None:
    if isinstance(data, Examples):
        write_images(path, data, dataset.column, dataset.label_column)
        return
    labels = data.labels * (POSITIVE if dataset.label_column == "sentiment" else 1)
    columns: dict[str, Sequence[str] | Sequence[int]] = {
        dataset.column: data.texts,
        dataset.label_column: labels.tolist(),
    }
    write_texts(path, columns if data.users is None else columns | {"user": data.users})
