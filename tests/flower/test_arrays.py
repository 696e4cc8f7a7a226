import io

import numpy as np
import pytest
import torch
from flwr.app import Array
from tests.flower import fake_grid  # noqa: F401 - skips without Flower

from datadefense.flower.arrays import make_record, read_array, read_record


def npy(array, version=None):
    file = io.BytesIO()
    np.lib.format.write_array(file, array, version=version)
    return file.getvalue()


def sent(data, stype="numpy.ndarray"):
    """An array whose claims of dtype and shape nobody looks at."""
    return Array("float32", (1,), stype, data)


@pytest.mark.parametrize(
    "values",
    [
        np.arange(6, dtype=np.float32).reshape(2, 3),
        np.asfortranarray(np.arange(6.0).reshape(2, 3)),
        np.float16([1.5]),
        np.int64(7),
        np.zeros((0, 3), np.float32),
        np.array([True, False]),
    ],
)
def test_as_numpy_reads_it(values):
    found = read_array(sent(npy(np.asanyarray(values))))
    assert tuple(found.shape) == np.shape(values)
    assert np.array_equal(found.numpy(), values)
    assert found.numpy().dtype == values.dtype


def test_both_versions_of_the_header():
    for version in ((1, 0), (2, 0)):
        assert read_array(sent(npy(np.ones(3), version))).tolist() == [1, 1, 1]
    with pytest.raises(ValueError, match="npy version"):
        read_array(sent(npy(np.ones(3), (3, 0))))


def test_nothing_is_copied():
    data = npy(np.ones(1000, np.float32))
    tensor = read_array(sent(data))
    start = np.frombuffer(data, np.uint8).__array_interface__["data"][0]
    assert start < tensor.data_ptr() < start + len(data)


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (npy(np.ones(4, np.float32))[:-1], "claims 16 bytes, 15 came"),
        (npy(np.ones(4, np.float32)) + b"!", "claims 16 bytes, 17 came"),
        (npy(np.ones(3)).replace(b"(3,)", b"(9999999999999,)"), "claims"),
        (npy(np.array(["text"])), "dtype <U4"),
        (npy(np.ones(2, ">f4")), "native"),
        (npy(np.ones(2, np.complex64)), "dtype complex64"),
        (b"", "magic"),
        (b"not an array", "magic"),
    ],
)
def test_what_cannot_be_read(data, message):
    with pytest.raises(ValueError, match=message):
        read_array(sent(data))


def test_a_huge_claim_allocates_nothing():
    """Eight terabytes in a header of a hundred bytes: refused, not tried."""
    header = b"{'descr': '<f8', 'fortran_order': False, 'shape': (1099511627776,), }"
    header += b" " * (118 - len(header) - 1) + b"\n"
    data = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header + b"0" * 8
    with pytest.raises(ValueError, match="claims 8796093022208 bytes, 8 came"):
        read_array(sent(data))


def test_nothing_is_unpickled(tmp_path):
    class Evil:
        def __reduce__(self):
            return (open, (str(tmp_path / "trap"), "w"))

    file = io.BytesIO()
    np.lib.format.write_array(file, np.array([Evil()], object), allow_pickle=True)
    with pytest.raises(ValueError, match="dtype object"):
        read_array(sent(file.getvalue()))
    with pytest.raises(ValueError, match="of kind 'pickle'"):
        read_array(sent(file.getvalue(), "pickle"))
    assert not (tmp_path / "trap").exists()


def test_records_there_and_back():
    tensors = {"w": torch.randn(2, 3), "n": torch.tensor(5), "h": torch.ones(2).half()}
    back = read_record(make_record(tensors))
    assert list(back) == list(tensors)
    for name, tensor in tensors.items():
        assert torch.equal(back[name], tensor)
        assert back[name].dtype == tensor.dtype
