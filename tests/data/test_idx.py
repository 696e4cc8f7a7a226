import gzip
import os
import struct

import numpy as np
import pytest
import torch

from datadefense.data.errors import DataError
from datadefense.data.idx import read_idx, read_idx_examples

IMAGES = np.arange(3 * 4 * 5, dtype=np.uint8).reshape(3, 4, 5)
LABELS = np.array([7, 1, 9], np.uint8)


def idx(array):
    sizes = struct.pack(f">{array.ndim}I", *array.shape)
    return bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()


@pytest.fixture(params=["plain", "gzipped"])
def put(request, tmp_path):
    def write(name, content):
        path = tmp_path / (name + (".gz" if request.param == "gzipped" else ""))
        path.write_bytes(gzip.compress(content) if request.param == "gzipped" else content)
        return path

    return write


def test_images_and_labels(put):
    images, labels = put("train-images-idx3-ubyte", idx(IMAGES)), put("labels", idx(LABELS))
    examples = read_idx_examples(images, labels, size=(4, 5))
    assert examples.inputs.dtype == torch.uint8
    assert np.array_equal(examples.inputs.numpy(), IMAGES[:, None])
    assert examples.labels.tolist() == [7, 1, 9]
    assert examples.labels.dtype == torch.int64


def test_emnist_is_turned_upright(put):
    images, labels = put("images", idx(IMAGES)), put("labels", idx(LABELS))
    inputs = read_idx_examples(images, labels, transposed=True, size=(4, 5)).inputs
    assert np.array_equal(inputs.numpy(), IMAGES.transpose(0, 2, 1)[:, None])
    assert inputs.is_contiguous()


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "not an IDX file"),
        (b"\0\0\x08", "not an IDX file"),
        (b"\0\1\x08\1" + b"\0\0\0\1a", "not an IDX file"),
        (b"\0\0\x0d\1" + b"\0\0\0\1aaaa", "not an IDX file of unsigned bytes"),
        (b"\0\0\x08\0", "not an IDX file"),
        (b"\0\0\x08\3" + b"\0\0\0\1", "ends within its header"),
        (b"\0\0\x08\1" + b"\0\0\0\0", "claims 0 values"),
        (b"\0\0\x08\3" + b"\xff" * 12, r"claims \d+ values"),
        (idx(IMAGES)[:-1], "has 59 values, its header says 60"),
        (idx(IMAGES) + b"a", "has more than 60 values, its header says 60"),
    ],
)
def test_wrong_files(put, content, message):
    path = put("wrong", content)
    with pytest.raises(DataError, match=f"{path.name} .*{message}"):
        read_idx(path)


def test_wrong_pairs(put):
    images, labels = put("images", idx(IMAGES)), put("labels", idx(LABELS))
    with pytest.raises(DataError, match=r"labels.* must hold 3 x 28 x 28 values.* says \[3\]"):
        read_idx_examples(labels, labels)
    with pytest.raises(
        DataError, match=r"images.* must hold N values, its header says \[3, 4, 5\]"
    ):
        read_idx_examples(images, images)
    with pytest.raises(DataError, match=r"images.* must hold 2 x 4 x 5 values.* says \[3, 4, 5\]"):
        read_idx_examples(images, put("few", idx(LABELS[:2])), size=(4, 5))
    with pytest.raises(
        DataError, match=r"images.* must hold 3 x 28 x 28 values.* says \[3, 4, 5\]"
    ):
        read_idx_examples(images, labels)


def test_a_bomb_is_not_unpacked(tmp_path, monkeypatch):
    """2 MB that unpack to 2 GB: the header says what would come, and nothing else is read."""
    labels = tmp_path / "labels"
    labels.write_bytes(idx(LABELS))
    images = tmp_path / "images.gz"
    images.write_bytes(
        gzip.compress(b"\0\0\x08\3" + struct.pack(">3I", 2000, 1000, 1000) + bytes(10**6))
    )
    taken = []
    read = gzip.GzipFile.read

    def counted(file, size=-1):
        taken.append(read(file, size))
        return taken[-1]

    monkeypatch.setattr(gzip.GzipFile, "read", counted)
    with pytest.raises(DataError, match=r"must hold 3 x 28 x 28 values, its header says \[2000"):
        read_idx_examples(images, labels)
    with pytest.raises(DataError, match="claims 2000000000 values, expected 1 to 268435456"):
        read_idx(images)
    assert sum(map(len, taken)) == 2 * 16


def test_dimensions_and_kinds_of_files(tmp_path):
    path = tmp_path / "wrong"
    path.write_bytes(b"\0\0\x08\xff" + b"\0\0\0\1" * 255 + b"a")
    with pytest.raises(DataError, match="1 to 4 dimensions: it claims 255"):
        read_idx(path)
    with path.open("wb") as file:
        file.truncate(1 << 40)
    with pytest.raises(DataError, match="has 1099511627776 bytes, more than the 268435476"):
        read_idx(path)
    os.mkfifo(tmp_path / "pipe")
    for odd in (tmp_path / "pipe", tmp_path):
        with pytest.raises(DataError, match="is not a file"):
            read_idx(odd)


def test_broken_gzip(tmp_path):
    path = tmp_path / "images.gz"
    packed = gzip.compress(idx(IMAGES))
    for content in (packed[:20], packed[:-4], packed[:-8] + b"\0" * 8, packed[:2] + b"nonsense"):
        path.write_bytes(content)
        with pytest.raises(DataError, match=r"images\.gz cannot be read"):
            read_idx(path)
    with pytest.raises(DataError, match="is not a file"):
        read_idx(tmp_path / "gone")
