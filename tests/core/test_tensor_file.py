import random

import pytest
import torch
from safetensors.torch import load, save

from datadefense.core import tensor_file
from datadefense.core.tensor_file import DTYPES, parse, read_content


def tensors():
    ones = {
        f"{where}-{name}": torch.ones(3).to(dtype)
        for name, dtype in DTYPES.items()
        for where in "ba"
    }
    return ones | {"empty": torch.zeros(0, 3), "scalar": torch.tensor(3.5)}


def test_a_file_is_the_librarys_byte_for_byte(tmp_path):
    tensor_file.write(tmp_path / "ours", tensors(), {})
    assert (tmp_path / "ours").read_bytes() == save(tensors())


def test_equal_content_makes_equal_bytes_whatever_its_order(tmp_path):
    metadata = {f"key-{j}": "é\n" * j for j in range(20)}
    written = set()
    for seed in range(5):
        draw = random.Random(seed)
        named, texts = list(tensors().items()), list(metadata.items())
        draw.shuffle(named)
        draw.shuffle(texts)
        tensor_file.write(tmp_path / "file", dict(named), dict(texts))
        written.add((tmp_path / "file").read_bytes())
    (content,) = written
    assert parse(content).metadata == metadata
    read = load(content)
    for name, tensor in tensors().items():
        assert read[name].dtype == tensor.dtype
        assert torch.equal(
            read[name].reshape(-1).view(torch.uint8), tensor.reshape(-1).view(torch.uint8)
        )


def test_views_and_gradients_are_written_as_what_they_show(tmp_path):
    matrix = torch.arange(6.0).view(2, 3).requires_grad_()
    tensor_file.write(tmp_path / "file", {"t": matrix.T, "row": matrix[1]}, {})
    read = parse(read_content(tmp_path / "file")).tensors
    assert torch.equal(read["t"], matrix.T)
    assert torch.equal(read["row"], matrix[1])


def test_a_dtype_that_a_file_cannot_hold(tmp_path):
    with pytest.raises(ValueError, match="z is torch.complex128, which a file cannot hold"):
        tensor_file.write(tmp_path / "file", {"z": torch.zeros(1, dtype=torch.complex128)}, {})


def test_bounds_of_what_is_read(tmp_path):
    path = tmp_path / "file"
    tensor_file.write(path, {"w": torch.ones(8)}, {})
    size = path.stat().st_size
    header = size - 8 - 32
    assert parse(read_content(path, size, header, size)).header_bytes == header
    for bounds, message in (
        ((size - 1, header, size), f"file has {size} bytes, expected <= {size - 1}"),
        ((size, header - 1, size), f"header of {header} bytes, expected <= {header - 1}"),
        ((size, header, size + 1), f"file has {size} bytes, had {size + 1} when listed"),
    ):
        with pytest.raises(ValueError, match=message):
            read_content(path, *bounds)


def test_a_seal(tmp_path):
    path = tmp_path / "file"
    tensor_file.write_sealed(path, {"w": torch.ones(8)}, {"a": "b"})
    content = path.read_bytes()
    file = parse(content)
    tensor_file.check_seal(content, file.metadata)
    assert file.metadata["a"] == "b"
    for place in (0, 9, -1):
        changed = bytearray(content)
        changed[place] ^= 1
        with pytest.raises(ValueError, match="its bytes have the SHA-256"):
            tensor_file.check_seal(bytes(changed), file.metadata)
    with pytest.raises(ValueError, match="it says ''"):
        tensor_file.check_seal(content, {})
