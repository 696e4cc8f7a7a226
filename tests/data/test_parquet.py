import io
import json
import os
import struct
import tracemalloc
import zlib
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import torch
from PIL import Image

from datadefense.core.examples import Examples
from datadefense.data import parquet
from datadefense.data.cache import cache_folder
from datadefense.data.errors import DataError
from datadefense.data.parquet import (
    column_names,
    count_rows,
    read_images,
    read_texts,
    write_images,
    write_texts,
)


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


def colour(count=5, size=(6, 4), seed=0):
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, (count, *size, 3), dtype=np.uint8)


def encode(pixels, format="PNG"):
    buffer = io.BytesIO()
    options = {"lossless": True, "exact": True} if format == "WEBP" else {}
    Image.fromarray(pixels).save(buffer, format, **options)
    return buffer.getvalue()


def write(path, contents, labels=None, image_column="img", label_column="label"):
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    structs = pa.array([{"bytes": content, "path": None} for content in contents], image)
    labels = pa.array(list(range(len(contents))) if labels is None else labels)
    pq.write_table(pa.table({image_column: structs, label_column: labels}), path, row_group_size=2)
    return path


@pytest.mark.parametrize("format", ["WEBP", "PNG"])
def test_pixels_are_exact_and_channels_first(tmp_path, format):
    pixels = colour()
    path = write(tmp_path / "train.parquet", [encode(image, format) for image in pixels])
    examples = read_images(path, "img", "label")
    assert examples.inputs.dtype == torch.uint8
    assert examples.inputs.is_contiguous()
    assert np.array_equal(examples.inputs.numpy(), pixels.transpose(0, 3, 1, 2))
    assert examples.labels.tolist() == [0, 1, 2, 3, 4]


def test_jpeg_is_read(tmp_path):
    path = write(tmp_path / "a.parquet", [encode(np.full((8, 8, 3), 90, np.uint8), "JPEG")])
    assert (read_images(path, "img", "label", channels=3).inputs.float() - 90).abs().max() < 3


@pytest.mark.parametrize("format", ["WEBP", "PNG"])
def test_grey_images_have_one_channel(tmp_path, format):
    grey = colour()[..., 0]
    stored = np.repeat(grey[..., None], 3, 3) if format == "WEBP" else grey
    path = write(tmp_path / "a.parquet", [encode(image, format) for image in stored])
    for channels in (None, 1):
        examples = read_images(path, "img", "label", channels=channels)
        assert np.array_equal(examples.inputs.numpy(), grey[:, None])
    assert read_images(path, "img", "label", channels=3).inputs.shape == (5, 3, 6, 4)


def test_colour_is_not_turned_grey(tmp_path):
    path = write(tmp_path / "a.parquet", [encode(image) for image in colour()])
    with pytest.raises(DataError, match=r"a\.parquet: expected grey images, found colour"):
        read_images(path, "img", "label", channels=1)


def test_a_grey_image_among_colour_is_widened(tmp_path):
    pixels = colour(2)
    path = write(tmp_path / "a.parquet", [encode(pixels[0]), encode(pixels[1, ..., 0])])
    inputs = read_images(path, "img", "label").inputs
    assert torch.equal(inputs[1, 0], inputs[1, 2])
    assert np.array_equal(inputs[1, 0].numpy(), pixels[1, ..., 0])


def test_shards_are_joined_in_order(tmp_path):
    pixels = colour(4)
    paths = [
        write(tmp_path / f"{part}.parquet", [encode(image) for image in pixels[part : part + 2]])
        for part in (0, 2)
    ]
    examples = read_images(paths, "img", "label")
    assert np.array_equal(examples.inputs.numpy(), pixels.transpose(0, 3, 1, 2))
    assert count_rows(paths) == 4


def test_sizes_must_agree(tmp_path):
    odd = write(tmp_path / "a.parquet", [encode(colour(1)[0]), encode(colour(1, (4, 6))[0])])
    with pytest.raises(DataError, match=r"a\.parquet, row 1: .* one size, found 6x4, expected 4x6"):
        read_images(odd, "img", "label")
    first = write(tmp_path / "b.parquet", [encode(colour(1)[0])])
    second = write(tmp_path / "c.parquet", [encode(colour(1, (4, 6))[0])])
    with pytest.raises(DataError, match="one size"):
        read_images([first, second], "img", "label")


def test_the_cache_serves_the_second_time(tmp_path, cache, monkeypatch):
    path = write(tmp_path / "a.parquet", [encode(image) for image in colour()])
    first = read_images(path, "img", "label")
    assert len(list(cache.rglob("*.safetensors"))) == 1
    monkeypatch.setattr(parquet, "_read_images", lambda *_: pytest.fail("decoded again"))
    again = read_images(path, "img", "label")
    assert torch.equal(first.inputs, again.inputs)
    assert torch.equal(first.labels, again.labels)
    again.inputs.zero_()  # a change in place is private, and does not reach the cache
    assert torch.equal(read_images(path, "img", "label").inputs, first.inputs)


def test_a_changed_file_is_read_anew(tmp_path):
    path = write(tmp_path / "a.parquet", [encode(image) for image in colour()])
    read_images(path, "img", "label")
    write(path, [encode(image) for image in colour(seed=1)])
    os.utime(path, ns=(0, 12345))
    assert np.array_equal(
        read_images(path, "img", "label").inputs.numpy(), colour(seed=1).transpose(0, 3, 1, 2)
    )


@pytest.mark.parametrize("damage", [b"", b"nonsense", None])
def test_a_broken_cache_is_made_anew(tmp_path, cache, damage):
    path = write(tmp_path / "a.parquet", [encode(image) for image in colour()])
    first = read_images(path, "img", "label")
    (stored,) = cache.rglob("*.safetensors")
    stored.write_bytes(stored.read_bytes()[:-7] if damage is None else damage)
    assert torch.equal(read_images(path, "img", "label").inputs, first.inputs)
    assert torch.equal(read_images(path, "img", "label").inputs, first.inputs)


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path, cache):
    cache.write_text("not a folder")
    path = write(tmp_path / "a.parquet", [encode(image) for image in colour()])
    assert len(read_images(path, "img", "label")) == 5


def test_the_cache_folder(monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", "~/x")
    assert cache_folder() == Path.home() / "x"
    monkeypatch.delenv("DATADEFENSE_CACHE")
    assert cache_folder() == Path.home() / ".cache" / "datadefense"


def test_every_truncation_is_named(tmp_path):
    content = write(tmp_path / "a.parquet", [encode(image) for image in colour()]).read_bytes()
    cut = tmp_path / "cut.parquet"
    for length in range(0, len(content), 97):
        cut.write_bytes(content[:length])
        with pytest.raises(DataError, match=r"cut\.parquet"):
            read_images(cut, "img", "label")


@pytest.mark.parametrize(
    ("contents", "message"),
    [
        ([b"not an image"], "row 0: broken image"),
        ([encode(colour(1)[0])[:-30]], "row 0: broken image"),
        ([encode(colour(1)[0]), b""], "row 1: broken image"),
        ([None], "row 0: the image has no bytes"),
        ([encode(np.zeros((4, 4, 4), np.uint8))], "cannot use an image of mode RGBA"),
        ([], "has no rows"),
    ],
)
def test_broken_images(tmp_path, contents, message):
    path = tmp_path / "bad.parquet"
    write(path, contents, pa.array(range(len(contents)), pa.int64()))
    with pytest.raises(DataError, match=rf"bad\.parquet.*{message}") as caught:
        read_images(path, "img", "label")
    assert "\n" not in str(caught.value)


def test_formats_that_nobody_asked_for_are_not_decoded(tmp_path):
    path = write(tmp_path / "a.parquet", [encode(colour(1)[0], "BMP")])
    with pytest.raises(DataError, match="broken image"):
        read_images(path, "img", "label")


def test_wrong_columns(tmp_path):
    path = write(tmp_path / "a.parquet", [encode(colour(1)[0])])
    with pytest.raises(DataError, match=r"no column 'image'; it has: img, label"):
        read_images(path, "image", "label")
    with pytest.raises(DataError, match=r"'img' must hold integers"):
        read_images(path, "label", "img")
    with pytest.raises(DataError, match=r"'label' must be a struct"):
        read_images(path, "label", "label")
    with pytest.raises(DataError, match=r"'img' must hold a text"):
        read_texts(path, "img", "label")
    empty = write(tmp_path / "b.parquet", [encode(colour(1)[0])] * 2, [1, None])
    with pytest.raises(DataError, match=r"'label' has 1 empty rows"):
        read_images(empty, "img", "label")


def test_missing_files(tmp_path):
    for read in (read_images, read_texts):
        with pytest.raises(DataError, match=r"gone\.parquet is not a file"):
            read(tmp_path / "gone.parquet", "a", "b")
        with pytest.raises(DataError, match="no parquet file"):
            read([], "a", "b")


@pytest.mark.parametrize("channels", [1, 3])
def test_images_survive_writing(tmp_path, channels):
    inputs = torch.from_numpy(colour().transpose(0, 3, 1, 2)[:, :channels].copy())
    examples = Examples(inputs, torch.tensor([3, 1, 4, 1, 5]))
    path = tmp_path / "new" / "train.parquet"
    write_images(path, examples, "img", "label")
    again = read_images(path, "img", "label", channels=channels)
    assert torch.equal(again.inputs, inputs)
    assert torch.equal(again.labels, examples.labels)
    assert [each.name for each in path.parent.iterdir()] == ["train.parquet"]
    described = json.loads(pq.read_schema(path).metadata[b"huggingface"])
    assert described["info"]["features"]["img"] == {"_type": "Image"}
    assert described["info"]["features"]["label"] == {"_type": "Value", "dtype": "int64"}


def test_texts_survive_writing(tmp_path):
    path = tmp_path / "train.parquet"
    texts = ["plain", "", "line\nbreak", "héllo \N{PILE OF POO}"]
    write_texts(path, {"text": texts, "label": [0, 1, 2, 3]})
    read, labels = read_texts([path, path], "text", "label")
    assert read == texts * 2
    assert labels.tolist() == [0, 1, 2, 3] * 2
    assert labels.dtype == torch.int64
    assert column_names(path) == ["text", "label"]


def test_broken_text(tmp_path):
    path = tmp_path / "a.parquet"
    broken = pa.array([b"\xff\xfe"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": broken, "label": [1]}), path)
    with pytest.raises(DataError, match=r"a\.parquet: 'text' holds broken text"):
        read_texts(path, "text", "label")
    pq.write_table(pa.table({"text": pa.array([None], pa.string()), "label": [1]}), path)
    with pytest.raises(DataError, match=r"must hold a text in every row"):
        read_texts(path, "text", "label")


def test_a_file_that_cannot_be_written(tmp_path):
    (tmp_path / "folder").write_text("a file")
    with pytest.raises(DataError, match="cannot be written"):
        write_texts(tmp_path / "folder" / "a.parquet", {"text": ["a"]})


@pytest.mark.parametrize("module", ["pyarrow", "PIL"])
def test_a_missing_extra_is_named(tmp_path, monkeypatch, module):
    path = write(tmp_path / "a.parquet", [encode(colour(1)[0])])
    for name in (module, f"{module}.parquet", f"{module}.Image"):
        monkeypatch.setitem(__import__("sys").modules, name, None)
    with pytest.raises(DataError, match=r"pip install 'datadefense\[data\]'"):
        read_images(path, "img", "label")
    with pytest.raises(DataError, match=r"pip install 'datadefense\[data\]'"):
        write_images(
            path, Examples(torch.zeros(1, 1, 2, 2).byte(), torch.zeros(1).long()), "i", "l"
        )


def chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(
        ">I", zlib.crc32(kind + content)
    )  # fmt: skip


def claiming(width, height):
    """A PNG of a few bytes that says it is large."""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0))
    pixels = chunk(b"IDAT", zlib.compress(bytes(1000)))
    return b"\x89PNG\r\n\x1a\n" + header + pixels + chunk(b"IEND", b"")


def pictures(path, contents):
    image = pa.struct([("bytes", pa.binary()), ("path", pa.string())])
    cells = [{"bytes": content, "path": None} for content in contents]
    columns = {"img": pa.array(cells, image), "label": [0] * len(cells)}
    pq.write_table(pa.table(columns), path)
    return path


@pytest.mark.parametrize(
    ("side", "message"),
    [
        (13_000, "row 0: (broken image: Image size|an image has at most 4194304 pixels)"),
        (9_000, "row 0: an image has at most 4194304 pixels, found 9000x9000"),
        (2_000, "gives more than 1200000000 bytes, expected <= "),
    ],
)
def test_large_images_are_not_decoded(tmp_path, side, message):
    """A file of 2 kB with two pictures of 13,000 x 13,000 took 3 GB."""
    path = pictures(tmp_path / "a.parquet", [claiming(side, side)] * (2 if side > 5_000 else 100))
    assert path.stat().st_size < 5_000
    tracemalloc.start()
    with pytest.raises(DataError, match=message):
        read_images(path, "img", "label")
    assert tracemalloc.get_traced_memory()[1] < 20_000_000
    tracemalloc.stop()


def test_a_data_sets_images_have_its_size(tmp_path):
    path = pictures(tmp_path / "a.parquet", [claiming(33, 32)])
    with pytest.raises(DataError, match="row 0: .* one size, found 33x32, expected 32x32"):
        read_images(path, "img", "label", size=(32, 32))


@pytest.mark.slow
def test_rows_that_stand_for_much_more_than_the_file_holds(tmp_path):
    """One text of 1 MB in 1,000 rows: the file has it once."""
    path = tmp_path / "a.parquet"
    table = pa.table({"text": ["x" * 1_000_000] * 1_000, "label": [0] * 1_000})
    pq.write_table(table, path)
    assert path.stat().st_size < 1_000_000
    with pytest.raises(DataError, match=r"gives more than \d+ bytes, expected <= "):
        read_texts(path, "text", "label")
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 1_000, pa.int32()), ["x" * 1_000_000])
    pq.write_table(pa.table({"text": column, "label": [0] * 1_000}), path)
    with pytest.raises(DataError, match="'text' must hold values, not dictionary<"):
        read_texts(path, "text", "label")


def test_too_many_rows_are_not_read(tmp_path, monkeypatch):
    path = tmp_path / "a.parquet"
    write_texts(path, {"text": ["a", "b"], "label": [0, 1]})
    monkeypatch.setattr("datadefense.data.parquet_table.MAX_ROWS", 1)
    with pytest.raises(DataError, match="claims 2 rows, expected <= 1"):
        read_texts(path, "text", "label")
