"""A data set described: its layouts in a data folder, its known editions, its copy on the hub."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from jaxtyping import Int64
from torch import Tensor

from datadefense.core.examples import Examples

Split = Literal["train", "test"]
SPLITS: tuple[Split, Split] = ("train", "test")
PARQUET = "parquet"


@dataclass(frozen=True, slots=True, eq=False)
class Texts:
    """Texts with one integer label each and, where they are known, their writers."""

    texts: Sequence[str]
    labels: Int64[Tensor, " examples"]
    users: Sequence[str] | None = None

    def __len__(self) -> int:
        return len(self.labels)


Data = Examples | Texts
Reader = Callable[[Sequence[Path]], Data]


@dataclass(frozen=True, slots=True)
class FileLayout:
    """One way in which a set lies in a data folder: patterns of folders, and of files in them."""

    name: str
    folders: tuple[str, ...]
    files: Mapping[Split, tuple[str, ...]]
    read: Reader

    def describe(self, split: Split) -> str:
        """Return where one split is looked for, in a few words."""
        first, *others = self.files[split]
        return f"{self.folders[0]}/{first}" + (f" (and {len(others)} more)" if others else "")


@dataclass(frozen=True, slots=True)
class Edition:
    """What a known copy holds: how many examples, and the digest of each split if known."""

    name: str
    counts: Mapping[Split, int]
    digests: Mapping[Split, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Hub:
    """A copy on the Hugging Face hub, pinned."""

    repo: str
    revision: str
    files: Mapping[Split, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class Dataset:
    """A data set: its columns in parquet, its official formats, its editions, its hub copy.

    Attributes:
        name: what users call it.
        folder: its folder within a data folder.
        column: the parquet column of images or texts.
        label_column: the parquet column of labels.
        classes: labels are 0 to classes - 1.
        read: the reader of its parquet files.
        official: the other layouts it comes in.
        editions: the copies that are known.
        hub: the copy to download, if there is one.
        unique_test: whether to drop the test images that are also in the training part.
    """

    name: str
    folder: str
    column: str
    label_column: str
    classes: int
    read: Reader
    official: tuple[FileLayout, ...]
    editions: tuple[Edition, ...]
    hub: Hub | None = None
    unique_test: bool = False

    @property
    def layouts(self) -> tuple[FileLayout, ...]:
        """Return where the set is looked for, in this order."""
        here, below = (self.folder,), (self.folder, f"{self.folder}/*")
        plain = {split: (f"{split}.parquet",) for split in SPLITS}
        shards = {split: (f"{split}-*-of-*.parquet",) for split in SPLITS}
        return (
            FileLayout(PARQUET, here, plain, self.read),
            FileLayout(PARQUET, below, shards, self.read),
            *self.official,
        )
