"""The patch against a slow twin, and against the authors' own images."""

import io
import math
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datadefense.attacks.trigger_patch import (
    TriggerPatch,
    colours,
    random_places,
    stamp,
    stamp_randomly,
)
from datadefense.core.rng import generator

DATA = Path(__file__).parents[3] / "shared" / "data"

STRIPES = [
    (2, 2, 254),
    (0, 160, 254),
    (2, 226, 252),
    (100, 194, 12),
    (237, 200, 26),
    (240, 72, 102),
    (212, 2, 130),
    (123, 0, 194),
]


def noise(count=5, height=16, width=20):
    shape = (count, 3, height, width)
    return torch.randint(256, shape, generator=generator(0, "noise"), dtype=torch.uint8)


def slow_stamp(image, place, size, weight, cells=None):
    result = image.clone()
    patch = colours(size)
    row, column = place
    for i in range(size if cells is None else cells):
        for j in range(size if cells is None else cells):
            for channel in range(3):
                old = int(image[channel, row + i, column + j])
                new = (1 - weight) * old + weight * int(patch[channel, i, j])
                result[channel, row + i, column + j] = math.floor(new)
    return result


@pytest.mark.parametrize("size", [1, 8, 10, 12, 14])
def test_the_stripes_go_on(size):
    patch = colours(size)
    assert patch.shape == (3, size, size)
    for row in range(size):
        for column in range(size):
            stripe = STRIPES[(row + column) % 8]
            cell = patch[:, row, column].tolist()
            assert max(abs(a - b) for a, b in zip(cell, stripe, strict=True)) <= 2


@given(st.sampled_from([1, 3, 8, 12]), st.floats(0.05, 1.0), st.data())
def test_one_pixel_after_another(size, weight, data):
    images = noise(count=3)
    places = [
        (data.draw(st.integers(0, 16 - size)), data.draw(st.integers(0, 20 - size))) for _ in images
    ]
    stamped = stamp(images, torch.tensor(places), TriggerPatch(size, weight))
    for image, place, result in zip(images, places, stamped, strict=True):
        assert result.equal(slow_stamp(image, place, size, weight))
    assert images.equal(noise(count=3))


def test_a_full_weight_covers_the_image():
    stamped = stamp(noise(1), torch.tensor([[3, 4]]), TriggerPatch(8, 1.0))
    assert stamped[0, :, 3:11, 4:12].equal(colours(8))


@pytest.mark.parametrize("size", [2, 7, 8, 14])
def test_four_quarters_make_the_whole(size):
    images, places = noise(), torch.tensor([[0, 0], [2, 6], [1, 3], [2, 1], [0, 5]])
    patch = TriggerPatch(size)
    together = images
    changed = []
    for quarter in patch.quarters():
        alone = stamp(images, places, quarter)
        changed.append((alone != images).any(dim=1))
        together = stamp(together, places, quarter)
    assert together.equal(stamp(images, places, patch))
    assert int(torch.stack(changed).sum(0).max()) == 1
    top_left = stamp(images, places, patch.quarters()[0])
    assert top_left[1].equal(slow_stamp(images[1], (2, 6), size, 0.8, cells=size // 2))


def test_places_are_uniform_over_all_that_fit():
    places = random_places(50_000, 12, 10, 8, generator(0, "places"))
    counts = torch.zeros(5, 3).index_put_(
        (places[:, 0], places[:, 1]), torch.ones(len(places)), accumulate=True
    )
    assert int(counts.sum()) == 50_000
    assert counts.flatten().tolist() == pytest.approx([50_000 / 15] * 15, rel=0.1)
    assert random_places(2, 8, 8, 8, generator(0, "only")).tolist() == [[0, 0], [0, 0]]


def test_random_stamps_repeat_with_their_generator():
    patch, images = TriggerPatch(), noise()
    first = stamp_randomly(images, patch, generator(0, "stamp"))
    assert first.equal(stamp_randomly(images, patch, generator(0, "stamp")))
    assert not first.equal(stamp_randomly(images, patch, generator(1, "stamp")))
    assert (first != images).any(dim=1).sum(dim=(1, 2)).max() <= 64
    assert stamp_randomly(images[:0], patch, generator(0, "stamp")).shape == (0, 3, 16, 20)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: TriggerPatch(size=0), "size must be >= 1, got 0"),
        (lambda: TriggerPatch(weight=0.0), "weight must be > 0, got 0"),
        (lambda: TriggerPatch(weight=1.5), "weight must be <= 1, got 1.5"),
        (lambda: TriggerPatch(part="left"), "part must be one of whole, top-left"),
        (
            lambda: stamp_randomly(noise(), TriggerPatch(17), generator(0)),
            "got size 17 for 16x20",
        ),
        (
            lambda: stamp(noise(1), torch.tensor([[9, 0]]), TriggerPatch()),
            r"rows 0..8 and columns 0..12, got a place \[9, 0\]",
        ),
        (
            lambda: stamp(noise(1), torch.tensor([[0, -1]]), TriggerPatch()),
            r"got a place \[0, -1\]",
        ),
        (
            lambda: stamp(noise(2), torch.tensor([[0, 0]]), TriggerPatch()),
            r"expected shape \(2, 2\), got \(1, 2\)",
        ),
        (
            lambda: stamp_randomly(noise().float(), TriggerPatch(), generator(0)),
            "uint8 .* got torch.float32",
        ),
        (
            lambda: stamp_randomly(noise()[:, :1], TriggerPatch(), generator(0)),
            r"got torch.uint8 \[5, 1, 16, 20\]",
        ),
    ],
)
def test_bad_input_names_the_inequality(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def read_images(path, label):
    parquet = pytest.importorskip("pyarrow.parquet")
    pictures = pytest.importorskip("PIL.Image")
    if not path.is_file():
        pytest.skip(f"no {path}: this test needs the authors' patched cars and CIFAR-10")
    table = parquet.read_table(path)
    rows = np.flatnonzero(np.asarray(table["label"]) == label)
    chosen = table["img"].take(rows).combine_chunks().field("bytes").to_pylist()
    return np.stack([np.asarray(pictures.open(io.BytesIO(data))) for data in chosen])


def find_original(patched, cars, by_top, by_bottom):
    """The car that equals the patched one in all but 8x8 pixels, and where these are.

    A patch of 8 rows leaves either the first or the last 8 of 32 rows as they were.
    """
    for index in by_top.get(patched[:8].tobytes(), []) + by_bottom.get(patched[-8:].tobytes(), []):
        rows, columns = np.nonzero((cars[index] != patched).any(axis=2))
        if np.ptp(rows) == np.ptp(columns) == 7:
            return index, (int(rows.min()), int(columns.min()))
    raise AssertionError("no car equals this one outside an 8x8 box")


@pytest.mark.parametrize(("part", "count"), [("train", 784), ("test", 196)])
def test_the_authors_images_come_back_to_the_last_bit(part, count):
    patched = read_images(DATA / "trigger_car" / f"{part}.parquet", label=1)
    cars = read_images(DATA / "cifar10" / f"{part}.parquet", label=1)
    by_top, by_bottom = {}, {}
    for index, car in enumerate(cars):
        by_top.setdefault(car[:8].tobytes(), []).append(index)
        by_bottom.setdefault(car[-8:].tobytes(), []).append(index)
    found = [find_original(image, cars, by_top, by_bottom) for image in patched]
    assert len(found) == len({index for index, _ in found}) == count
    originals = torch.from_numpy(cars[[index for index, _ in found]]).permute(0, 3, 1, 2)
    places = torch.tensor([place for _, place in found])
    expected = torch.from_numpy(patched).permute(0, 3, 1, 2)
    error = stamp(originals, places, TriggerPatch()).int() - expected.int()
    assert int(error.abs().max()) == 0
    assert places.min(0).values.tolist() == [0, 0]
    assert places.max(0).values.tolist() == [24, 24]
