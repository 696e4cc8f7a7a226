"""The table of data sets: for each, the readers, file names, digests and pinned hub copy."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Literal

import torch

from datadefense.core.examples import Examples
from datadefense.data.ardis import read_ardis
from datadefense.data.dataset import (
    SPLITS,
    Dataset,
    Edition,
    FileLayout,
    Hub,
    Reader,
    Split,
    Texts,
)
from datadefense.data.errors import DataError, refusing
from datadefense.data.file_content import read_at_most
from datadefense.data.idx import read_idx_examples
from datadefense.data.parquet import read_images, read_texts
from datadefense.data.safe_pickle import read_cifar, read_image_array
from datadefense.data.sentiment140 import read_tweets_csv, read_tweets_parquet

MAX_TEXT = 1 << 26
"""Most bytes of a text that is read line by line."""


def _read_pair(read: Callable[[Path, Path], Examples], files: Sequence[Path]) -> Examples:
    return read(files[0], files[1])


def _read_southwest(files: Sequence[Path]) -> Examples:
    images = read_image_array(files[0])
    return Examples(images, torch.zeros(len(images), dtype=torch.int64))


def _read_tweets(files: Sequence[Path]) -> Texts:
    return Texts(*(read_tweets_csv(files[0]) if files[0].suffix == ".csv" else
                   read_tweets_parquet(files)))  # fmt: skip


def _read_lines(files: Sequence[Path]) -> Texts:
    with refusing(f"{files[0]} is not a readable text"):
        lines = read_at_most(files[0], MAX_TEXT).decode().split("\n")
    texts = [line.strip() for line in lines if line.strip()]
    if not texts:
        raise DataError(f"{files[0]} holds no texts")
    return Texts(texts, torch.ones(len(texts), dtype=torch.int64))


def _read_labelled_texts(files: Sequence[Path]) -> Texts:
    return Texts(*read_texts(files, "text", "label"))


def _images(image: str, label: str, channels: Literal[1, 3], side: int) -> Reader:
    return partial(
        read_images,
        image_column=image,
        label_column=label,
        channels=channels,
        size=(side, side),
    )


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
        read=_images("img", "label", 3, 32),
        official=(
            FileLayout(
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
        read=_images("img", "fine_label", 3, 32),
        official=(
            FileLayout(
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
        read=_images("image", "label", 1, 28),
        official=(
            FileLayout(
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
        read=_images("image", "label", 1, 28),
        official=(
            FileLayout(
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
        read=_images("image", "label", 1, 28),
        official=(
            FileLayout(
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
            FileLayout(
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
        read=_images("img", "label", 3, 32),
        official=(
            FileLayout(
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
            FileLayout(
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
