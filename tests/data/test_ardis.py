import time
import warnings

import numpy as np
import pytest
import torch

from datadefense.data.ardis import read_ardis
from datadefense.data.errors import DataError


def write(folder, pixels, labels):
    """Write the two files in the official form: blanks, ten decimals, one-hot labels padded."""
    images = folder / "ARDIS_train_2828.csv"
    np.savetxt(images, pixels.reshape(len(pixels), -1), fmt="%.10f")
    one_hot = folder / "ARDIS_train_labels.csv"
    rows = ["".join(f"{int(label == digit):>4}" for digit in range(10)) for label in labels]
    one_hot.write_text("".join(f"{row} \n" for row in rows))
    return images, one_hot


def digits(count, seed=0):
    generator = np.random.default_rng(seed)
    return generator.integers(0, 256, (count, 28, 28)), generator.integers(0, 10, count)


def test_images_and_labels(tmp_path):
    pixels, labels = digits(12)
    examples = read_ardis(*write(tmp_path, pixels, labels))
    assert examples.inputs.dtype == torch.uint8
    assert np.array_equal(examples.inputs.numpy(), pixels[:, None])
    assert np.array_equal(examples.labels.numpy(), labels)
    assert examples.labels.dtype == torch.int64


def test_one_row_is_enough(tmp_path):
    pixels, labels = digits(1)
    assert len(read_ardis(*write(tmp_path, pixels, labels))) == 1


def test_a_thousand_rows_are_quick(tmp_path):
    pixels, labels = digits(1000)
    files = write(tmp_path, pixels, labels)
    start = time.perf_counter()
    read_ardis(*files)
    assert time.perf_counter() - start < 2  # 0.07 s where it was written


@pytest.mark.parametrize(
    ("which", "content", "message"),
    [
        (0, "", "is empty"),
        (0, "\n\n", "is empty"),
        (0, "1.0 2.0\n", "has 2 columns, expected 784"),
        (0, "1.0 2.0\n3.0\n", "is not a table of numbers"),
        (0, "a " * 784, "is not a table of numbers"),
        (0, "1.0 " * 783 + "256.0", "pixels must be 0 to 255, found 1 to 256"),
        (0, "1.0 " * 783 + "-1.0", "pixels must be 0 to 255, found -1 to 1"),
        (0, "1.0 " * 783 + "nan", "not finite"),
        (0, "\xff\xfe\x00", "28.csv"),
        (0, "1.0 " * 784, "has 1 rows, ARDIS_train_labels.csv 2"),
        (1, "0 0 1 0 0 0 0 0 0\n", "has 9 columns, expected 10"),
        (1, "0 0 1 0 0 0 0 0 0 1\n" * 2, "a single 1 among 10 columns"),
        (1, "0 0 0 0 0 0 0 0 0 0\n" * 2, "a single 1 among 10 columns"),
        (1, "0 0 0.5 0 0 0.5 0 0 0 0\n" * 2, "a single 1 among 10 columns"),
    ],
)
def test_wrong_files(tmp_path, which, content, message):
    files = write(tmp_path, *digits(2))
    files[which].write_text(content, encoding="latin-1")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(DataError, match=f"{files[which].name}|{message}") as caught:
            read_ardis(*files)
    assert message in str(caught.value)


def test_missing_files(tmp_path):
    images, labels = write(tmp_path, *digits(2))
    with pytest.raises(DataError, match="gone is not a file"):
        read_ardis(tmp_path / "gone", labels)
    with pytest.raises(DataError, match="gone is not a file"):
        read_ardis(images, tmp_path / "gone")
