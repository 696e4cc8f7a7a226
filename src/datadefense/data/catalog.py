"""The catalog of data sets: where each is looked for, how it is read, and how it is known.

A set is looked for in a data folder, as parquet first and in its official format next, and then, if
the folder has nothing of it, on the Hugging Face hub at a pinned revision.
"""

import hashlib
import itertools
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Int64
from torch import Tensor

from datadefense.data.ardis import read_ardis
from datadefense.data.idx import read_idx_examples
from datadefense.data.parquet import (
    DataError,
    count_rows,
    one_line,
    read_images,
    read_texts,
    write_images,
    write_texts,
)
from datadefense.data.safe_pickle import read_cifar, read_image_array
from datadefense.data.sentiment140 import POSITIVE, read_tweets_csv, read_tweets_parquet
from datadefense.examples import Examples
from datadefense.settings import suggest

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
class Layout:
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
    official: tuple[Layout, ...]
    editions: tuple[Edition, ...]
    hub: Hub | None = None
    unique_test: bool = False

    @property
    def layouts(self) -> tuple[Layout, ...]:
        """Return where the set is looked for, in this order."""
        here, below = (self.folder,), (self.folder, f"{self.folder}/*")
        plain = {split: (f"{split}.parquet",) for split in SPLITS}
        shards = {split: (f"{split}-*-of-*.parquet",) for split in SPLITS}
        return (
            Layout(PARQUET, here, plain, self.read),
            Layout(PARQUET, below, shards, self.read),
            *self.official,
        )


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
    folder = _data_folder(data_dir)
    located = _locate(dataset, folder, split) if folder else None
    read, files = located if located else (dataset.read, _download(dataset, folder, split))
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
    return [_find(dataset, _data_folder(data_dir), _count) for dataset in DATASETS.values()]


def check(name: str, data_dir: Path | None) -> Finding:
    """Read a set whole, as ``load`` gives it, and compare counts and digests with known editions.

    ``edition`` says which one it is: complete, or which subset.
    """
    digests: dict[Split, str] = {}

    def count(dataset: Dataset, layout: Layout, split: Split, files: tuple[Path, ...]) -> int:
        data = _checked(dataset, files, layout.read(files))
        digests[split] = digest(data)
        return len(data)

    found = _find(find_dataset(name), _data_folder(data_dir), count)
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
    source = _existing(source_dir)
    parts: dict[Split, Data] = {}
    for split in SPLITS:
        located = _locate(dataset, source, split, dataset.official)
        if located is None:
            raise DataError(_absent(dataset, source, split, dataset.official))
        parts[split] = _checked(dataset, located[1], located[0](located[1]))
    written: list[Path] = []
    for split, data in parts.items():
        path = target_dir / dataset.folder / f"{split}.parquet"
        _write(path, dataset, data)
        written.append(path)
    return tuple(written)


def digest(data: Data) -> str:
    """Return a SHA-256 over every example and its label; the order of examples does not count."""
    return hashlib.sha256(b"".join(sorted(_fingerprints(data)))).hexdigest()


def _fingerprints(data: Data) -> Iterator[bytes]:
    contents: Iterator[bytes]
    if isinstance(data, Examples):
        contents = (pixels.tobytes() for pixels in data.inputs.numpy())
    else:
        contents = (text.encode() for text in data.texts)
    for label, content in zip(data.labels.tolist(), contents, strict=True):
        yield hashlib.sha256(b"%d:" % label + content).digest()


def _data_folder(data_dir: Path | None) -> Path | None:
    chosen = os.environ.get("DATADEFENSE_DATA")
    folder = data_dir or (Path(chosen).expanduser() if chosen else None)
    return _existing(folder) if folder else None


def _existing(folder: Path) -> Path:
    if not folder.is_dir():
        raise DataError(f"{folder} is not a folder")
    return folder


def _locate(
    dataset: Dataset, folder: Path, split: Split, layouts: tuple[Layout, ...] | None = None
) -> tuple[Reader, tuple[Path, ...]] | None:
    for layout in dataset.layouts if layouts is None else layouts:
        if files := _files(layout, folder, split):
            return layout.read, files
    return None


def _files(layout: Layout, folder: Path, split: Split) -> tuple[Path, ...]:
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


def _places(folder: Path, pattern: str) -> list[Path]:
    return sorted(folder.glob(pattern)) if "*" in pattern else [folder / pattern]


def _shards(place: Path, paths: list[Path]) -> tuple[Path, ...]:
    total = paths[0].stem.rpartition("-of-")[2]
    if not total.isdecimal() or int(total) != len(paths):
        raise DataError(f"{place} is incomplete: {len(paths)} of the files {paths[0].name} ...")
    return tuple(paths)


def _absent(
    dataset: Dataset, folder: Path | None, split: Split, layouts: tuple[Layout, ...]
) -> str:
    places = " or ".join(layout.describe(split) for layout in layouts)
    if folder is None:
        return f"no data folder: give one (or set DATADEFENSE_DATA) that holds {places}"
    return f"the {split} part of {dataset.name} is not in {folder}: looked for {places}"


def _download(dataset: Dataset, folder: Path | None, split: Split) -> tuple[Path, ...]:
    absent = _absent(dataset, folder, split, dataset.layouts)
    hub = dataset.hub
    if hub is None:
        raise DataError(f"{absent}; it has no copy on the hub")
    try:
        return tuple(_fetch(hub, name) for name in hub.files[split])
    except ImportError as error:
        raise DataError(f"{absent}; to download it: pip install 'datadefense[data]'") from error
    except Exception as error:  # the network fails in many ways
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise DataError(f"{absent}; {hub.repo} could not be downloaded ({reason})") from error


def _fetch(hub: Hub, name: str) -> Path:
    from huggingface_hub import (  # noqa: PLC0415 - an extra
        get_hf_file_metadata,
        hf_hub_download,
        hf_hub_url,
    )
    from huggingface_hub.errors import LocalEntryNotFoundError  # noqa: PLC0415

    fetch = partial(hf_hub_download, hub.repo, name, repo_type="dataset", revision=hub.revision)
    try:
        return Path(fetch(local_files_only=True))
    except LocalEntryNotFoundError:
        # Asked once: hf_hub_download itself would ask six times, for 23 seconds, when offline.
        url = hf_hub_url(hub.repo, name, repo_type="dataset", revision=hub.revision)
        get_hf_file_metadata(url)
        return Path(fetch())


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
    kept = [at for at, image in enumerate(data.inputs.numpy()) if image.tobytes() not in known]
    return data.take(torch.tensor(kept, dtype=torch.int64))


def _count(dataset: Dataset, layout: Layout, _split: Split, files: tuple[Path, ...]) -> int:
    if layout.name == PARQUET and dataset.column != "text":
        return count_rows(files)
    return len(layout.read(files))


def _find(
    dataset: Dataset,
    folder: Path | None,
    count: Callable[[Dataset, Layout, Split, tuple[Path, ...]], int],
) -> Finding:
    found: str | None = None
    counts: dict[Split, int] = {}
    if folder is None:
        return Finding(dataset.name, None, counts, None, None)
    try:
        for split in SPLITS:
            for layout in dataset.layouts:
                if files := _files(layout, folder, split):
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


def _read_pair(read: Callable[[Path, Path], Examples], files: Sequence[Path]) -> Examples:
    return read(files[0], files[1])


def _read_southwest(files: Sequence[Path]) -> Examples:
    images = read_image_array(files[0])
    return Examples(images, torch.zeros(len(images), dtype=torch.int64))


def _read_tweets(files: Sequence[Path]) -> Texts:
    return Texts(*(read_tweets_csv(files[0]) if files[0].suffix == ".csv" else
                   read_tweets_parquet(files)))  # fmt: skip


def _read_lines(files: Sequence[Path]) -> Texts:
    try:
        lines = files[0].read_text(encoding="utf-8").split("\n")
    except (OSError, ValueError) as error:
        raise DataError(f"{files[0]} is not a readable text: {one_line(error)}") from error
    texts = [line.strip() for line in lines if line.strip()]
    if not texts:
        raise DataError(f"{files[0]} holds no texts")
    return Texts(texts, torch.ones(len(texts), dtype=torch.int64))


def _read_labelled_texts(files: Sequence[Path]) -> Texts:
    return Texts(*read_texts(files, "text", "label"))


def _images(image: str, label: str, channels: Literal[1, 3]) -> Reader:
    return partial(read_images, image_column=image, label_column=label, channels=channels)


def _sizes(train: int, test: int) -> dict[Split, int]:
    return {"train": train, "test": test}


def _hub_files(folder: str) -> dict[Split, tuple[str, ...]]:
    return {split: (f"{folder}/{split}-00000-of-00001.parquet",) for split in SPLITS}


def _idx_files(train: str, test: str) -> dict[Split, tuple[str, ...]]:
    names: dict[Split, str] = {"train": train, "test": test}
    return {
        split: (f"{names[split]}images-idx3-ubyte*", f"{names[split]}labels-idx1-ubyte*")
        for split in SPLITS
    }


DATASETS: Mapping[str, Dataset] = {
    "cifar10": Dataset(
        name="cifar10",
        folder="cifar10",
        column="img",
        label_column="label",
        classes=10,
        read=_images("img", "label", 3),
        official=(
            Layout(
                "CIFAR python batches",
                ("cifar-10-batches-py", "cifar10/cifar-10-batches-py"),
                {
                    "train": tuple(f"data_batch_{number}" for number in range(1, 6)),
                    "test": ("test_batch",),
                },
                partial(read_cifar, label_key="labels"),
            ),
        ),
        editions=(
            Edition(
                "complete",
                _sizes(50_000, 10_000),
                {
                    "train": "98be937972841547c25e121d1437009a9ecfbbcdd40cff28b47eef66ced984b8",
                    "test": "af7f3b9ee515824586f0e3de02482ef31584167c4b64557c883282787acf9145",
                },
            ),
        ),
        hub=Hub(
            "uoft-cs/cifar10",
            "0b2714987fa478483af9968de7c934580d0bb9a2",
            _hub_files("plain_text"),
        ),
    ),
    "cifar100": Dataset(
        name="cifar100",
        folder="cifar100",
        column="img",
        label_column="fine_label",
        classes=100,
        read=_images("img", "fine_label", 3),
        official=(
            Layout(
                "CIFAR python batches",
                ("cifar-100-python", "cifar100/cifar-100-python"),
                {"train": ("train",), "test": ("test",)},
                partial(read_cifar, label_key="fine_labels"),
            ),
        ),
        editions=(
            Edition("complete", _sizes(50_000, 10_000)),
            Edition(
                "subset: 200 + 40 of each class",
                _sizes(20_000, 4_000),
                {
                    "train": "65eb05ffc48ea8dfeca2fee32acaa4003075b44d3da47d5371cd154fe39c759d",
                    "test": "f812d534d5f11bf085083c8d07b8e122b734dc7c5f12c8a1152ed4a987417a1b",
                },
            ),
        ),
        hub=Hub(
            "uoft-cs/cifar100",
            "aadb3af77e9048adbea6b47c21a81e47dd092ae5",
            _hub_files("cifar100"),
        ),
    ),
    "mnist": Dataset(
        name="mnist",
        folder="mnist",
        column="image",
        label_column="label",
        classes=10,
        read=_images("image", "label", 1),
        official=(
            Layout(
                "IDX",
                ("mnist", "MNIST/raw", "mnist/MNIST/raw"),
                _idx_files("train-", "t10k-"),
                partial(_read_pair, read_idx_examples),
            ),
        ),
        editions=(
            Edition(
                "complete",
                _sizes(60_000, 10_000),
                {
                    "train": "8e345150105f103f53ed6d53b96b0856f99eb15051b6298b6ef4fb277ea34bce",
                    "test": "c8db70ec2ecdfdf5f10215eb0cf9011debdfc53d68d1901b4027f39e57ed9c93",
                },
            ),
        ),
        hub=Hub(
            "ylecun/mnist",
            "77f3279092a1c1579b2250db8eafed0ad422088c",
            _hub_files("mnist"),
        ),
    ),
    "emnist-digits": Dataset(
        name="emnist-digits",
        folder="emnist_digits",
        column="image",
        label_column="label",
        classes=10,
        read=_images("image", "label", 1),
        official=(
            Layout(
                "IDX",
                ("emnist_digits", "emnist", "emnist/gzip", "gzip", "EMNIST/raw", "."),
                _idx_files("emnist-digits-train-", "emnist-digits-test-"),
                partial(_read_pair, partial(read_idx_examples, transposed=True)),
            ),
        ),
        editions=(Edition("complete", _sizes(240_000, 40_000)),),
    ),
    "ardis": Dataset(
        name="ardis",
        folder="ardis",
        column="image",
        label_column="label",
        classes=10,
        read=_images("image", "label", 1),
        official=(
            Layout(
                "ARDIS text",
                ("ardis", "ARDIS_DATASET_IV", "ardis/ARDIS_DATASET_IV"),
                {
                    split: (f"ARDIS_{split}_2828.csv", f"ARDIS_{split}_labels.csv")
                    for split in SPLITS
                },
                partial(_read_pair, read_ardis),
            ),
        ),
        editions=(Edition("complete", _sizes(6_600, 1_000)),),
    ),
    "sentiment140": Dataset(
        name="sentiment140",
        folder="sentiment140",
        column="text",
        label_column="sentiment",
        classes=2,
        read=_read_tweets,
        official=(
            Layout(
                "Sentiment140 CSV",
                ("sentiment140", "trainingandtestdata", "."),
                {
                    "train": ("training.1600000.processed.noemoticon.csv",),
                    "test": ("testdata.manual.2009.06.14.csv",),
                },
                _read_tweets,
            ),
        ),
        editions=(
            Edition("complete, without the 139 neutral tweets", _sizes(1_600_000, 359)),
            Edition(
                "subset: a balanced quarter, without users",
                _sizes(380_000, 20_000),
                {
                    "train": "227e1b223ba420138fcca9c13ff44aab0eb7631f6e8f1007bac64878b03cc9dc",
                    "test": "fb424acfe15adecee24d1a851f2ec6310c27233328487a235310380d69f7596f",
                },
            ),
        ),
        hub=Hub(
            "stanfordnlp/sentiment140",
            "refs/convert/parquet",
            {split: (f"sentiment140/{split}/0000.parquet",) for split in SPLITS},
        ),
    ),
    "southwest": Dataset(
        name="southwest",
        folder="southwest",
        column="img",
        label_column="label",
        classes=10,
        read=_images("img", "label", 3),
        official=(
            Layout(
                "pickled arrays",
                ("southwest", "saved_datasets", "."),
                {split: (f"southwest_images_new_{split}.pkl",) for split in SPLITS},
                _read_southwest,
            ),
        ),
        editions=(
            Edition(
                "complete, test rows 140-143 are also train rows",
                _sizes(784, 196),
                {
                    "train": "57c12833f24f40cfea332a7dfb293c5d437112ea9beb76b0125f93df369dcae3",
                    "test": "c403f53c87fc138d43b3fce0f0e371610edc57d8e16f53ab5baf26de75c53ff1",
                },
            ),
        ),
        unique_test=True,
    ),
    "yorgos-lanthimos": Dataset(
        name="yorgos-lanthimos",
        folder="yorgos_lanthimos",
        column="text",
        label_column="label",
        classes=2,
        read=_read_labelled_texts,
        official=(
            Layout(
                "text lines",
                ("yorgos_lanthimos",),
                {split: (f"{split}.txt",) for split in SPLITS},
                _read_lines,
            ),
        ),
        editions=(
            Edition(
                "complete",
                _sizes(259, 120),
                {
                    "train": "66acef6494995b64a063f347a16b77ee6f7ad75c5e62aa62cf1acabdc0713f6f",
                    "test": "d3cbd6e44e963687c28e454cabbf713ea9e36ffc6ba1fd91ddef81cda9d20661",
                },
            ),
        ),
    ),
}
