import builtins
import contextlib
import copyreg
import datetime
import os
import pickle
import struct
import time
from functools import partial

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datadefense.data import plain_pickle
from datadefense.data.errors import DataError
from datadefense.data.safe_pickle import read_cifar, read_image_array, read_plain


class Reduces:
    def __init__(self, function, *arguments):
        self.reduced = (function, arguments)

    def __reduce__(self):
        return self.reduced


def put(folder, content):
    path = folder / "data.pkl"
    path.write_bytes(content)
    return path


PLAIN = {
    "numbers": [0, 1, -1, 255, 65536, 1 << 40, -(1 << 80), 0.5, True, False, None],
    "texts": ["", "a", "é", "x" * 300],
    "bytes": [b"", b"a" * 300],
    "nested": {"a": ({}, (), [], {"b": [1, (2, 3)]})},
}


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_plain_values(tmp_path, protocol):
    assert read_plain(put(tmp_path, pickle.dumps(PLAIN, protocol))) == PLAIN


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("dtype", ["?", "u1", "i1", "<i2", ">i4", "<u8", "f2", "<f4", ">f8"])
def test_arrays(tmp_path, protocol, dtype):
    array = np.arange(24).reshape(2, 3, 4).astype(dtype)
    for given_array in (array, np.asfortranarray(array), array[:, :0], array[:, ::2]):
        read = read_plain(put(tmp_path, pickle.dumps({"a": [given_array]}, protocol)))["a"][0]
        assert type(read) is np.ndarray
        assert read.dtype == given_array.dtype
        assert np.array_equal(read, given_array)
        assert not read.flags.writeable


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_scalars_become_python_numbers(tmp_path, protocol):
    values = [np.int64(-3), np.float32(0.5), np.uint8(200), np.bool_(True)]
    read = read_plain(put(tmp_path, pickle.dumps(values, protocol)))
    assert read == [-3, 0.5, 200, True]
    assert [type(value) for value in read] == [int, float, int, bool]


def test_shared_parts_are_fine(tmp_path):
    array = np.arange(4)
    read = read_plain(put(tmp_path, pickle.dumps([array, array, array.dtype.str])))
    assert np.array_equal(read[0], read[1])


def python2_batch(count=3):
    """A CIFAR batch as Python 2 wrote it: every text is a SHORT_BINSTRING or a BINSTRING."""
    pixels = (np.arange(count * 3072) % 251).astype(np.uint8).reshape(count, 3072)

    def text(value):
        return b"U" + bytes([len(value)]) + value

    array = (
        b"cnumpy.core.multiarray\n_reconstruct\n(cnumpy\nndarray\nK\x00\x85" + text(b"b") + b"tR"
        b"(K\x01K"
        + bytes([count])
        + b"M\x00\x0c\x86cnumpy\ndtype\n("
        + text(b"u1")
        + b"K\x00K\x01tR"
        b"(K\x03" + text(b"|") + b"NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb\x89"
        b"T" + struct.pack("<i", pixels.size) + pixels.tobytes() + b"tb"
    )
    labels = b"](" + b"".join(b"K" + bytes([label + 5]) for label in range(count)) + b"e"
    names = b"](" + b"".join(text(b"x\xe9.png") for _ in range(count)) + b"e"
    content = (
        b"\x80\x02}(" + text(b"batch_label") + text(b"training batch 1 of 5") + text(b"labels")
        + labels + text(b"data") + array + text(b"filenames") + names + b"u."
    )  # fmt: skip
    return content, pixels


def test_a_cifar_batch_of_python_2(tmp_path):
    content, pixels = python2_batch()
    path = put(tmp_path, content)
    examples = read_cifar([path, path], "labels")
    assert examples.inputs.shape == (6, 3, 32, 32)
    assert examples.inputs.dtype == torch.uint8
    assert np.array_equal(examples.inputs[:3].flatten(1).numpy(), pixels)
    assert examples.labels.tolist() == [5, 6, 7] * 2


@pytest.mark.parametrize(
    ("batch", "message"),
    [
        ([1], "not a batch"),
        ({}, "'data' must be a uint8 array"),
        ({"data": np.zeros((2, 3072))}, "'data' must be a uint8 array"),
        ({"data": np.zeros((2, 9), np.uint8)}, "'data' must be a uint8 array"),
        ({"data": np.zeros((2, 3072), np.uint8)}, "'labels' must be a list"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1, "a"]}, "'labels' must be a list"),
        ({"data": np.zeros((2, 3072), np.uint8), "labels": [1]}, "2 images, but 1 labels"),
        ({"data": np.zeros((0, 3072), np.uint8), "labels": []}, "0 images, but 0 labels"),
        ({"data": np.zeros((1, 3072), np.uint8), "labels": [1 << 70]}, "'labels' must be a list"),
        ({b"\xff": 1}, "'data' must be a uint8 array"),
    ],
)
def test_wrong_batches(tmp_path, batch, message):
    with pytest.raises(DataError, match=rf"data\.pkl.*{message}"):
        read_cifar([put(tmp_path, pickle.dumps(batch))], "labels")


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
def test_southwest_images(tmp_path, protocol):
    pixels = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), dtype=np.uint8)
    images = read_image_array(put(tmp_path, pickle.dumps(pixels, protocol)))
    assert np.array_equal(images.numpy(), pixels.transpose(0, 3, 1, 2))
    assert images.is_contiguous()
    images[0] = 0  # it is the reader's own memory


@pytest.mark.parametrize("wrong", [[1], np.zeros((2, 4, 4, 3)), np.zeros((2, 4, 4), np.uint8)])
def test_wrong_images(tmp_path, wrong):
    with pytest.raises(DataError, match=r"data\.pkl must hold a uint8 array of images"):
        read_image_array(put(tmp_path, pickle.dumps(wrong)))


def hostile(marker):
    """Programs that would leave a file behind, or worse."""
    command = f"touch {marker}"
    code = f"open({str(marker)!r}, 'w')"
    return {
        "os.system": Reduces(os.system, command),
        "eval": Reduces(builtins.eval, code),
        "exec": Reduces(builtins.exec, code),
        "open": Reduces(builtins.open, str(marker), "w"),
        "import": Reduces(builtins.__import__, "os"),
        "getattr": Reduces(builtins.getattr, Reduces(builtins.__import__, "os"), "system"),
        "partial": partial(os.system, command),
        "nested in a container": {"data": [(Reduces(os.system, command),)]},
        "nested in arguments": Reduces(builtins.list, (Reduces(os.system, command),)),
        "in an object array": np.array([Reduces(os.system, command)], dtype=object),
        "an object array": np.array([None, {}], dtype=object),
        "a structured dtype": np.zeros(2, dtype=[("a", "u1"), ("b", "O")]),
        "a sub-array dtype": np.dtype(("u1", (3,))),
        "a datetime array": np.zeros(2, "M8[s]"),
        "a text array": np.array(["abc"]),
        "pickle in pickle": Reduces(pickle.loads, pickle.dumps(Reduces(os.system, command))),
        "numpy.fromfile": Reduces(np.fromfile, "/etc/hostname"),
        "numpy.load": Reduces(np.load, str(marker)),
        "a class": datetime.date,
        "an object": datetime.date(2020, 1, 1),
        "a set": {1, 2},
        "a complex number": 1j,
        "bytearray(size)": Reduces(bytearray, 1 << 40),
        "an extension": Reduces(copyreg._reconstructor, list, object, None),
    }


@pytest.mark.parametrize("protocol", range(pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", hostile("/nowhere"))
def test_hostile_objects(tmp_path, name, protocol):
    marker = tmp_path / "ran"
    path = put(tmp_path, pickle.dumps(hostile(marker)[name], protocol))
    with pytest.raises(DataError, match=r"data\.pkl is not a pickle of plain data: ") as caught:
        read_plain(path)
    assert "\n" not in str(caught.value)
    assert not marker.exists()


ARRAY = b"cnumpy.core.multiarray\n_reconstruct\n"
U1 = b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR(K\x03U\x01|NNNJ\xff\xff\xff\xffJ\xff\xff\xff\xffK\x00tb"
PROGRAMS = {
    "INST": b"(S'true'\nios\nsystem\n.",
    "OBJ": b"(cos\nsystem\nS'true'\no.",
    "NEWOBJ": b"\x80\x02cbuiltins\nlist\n)\x81.",
    "NEWOBJ of an allowed name": b"\x80\x02cnumpy\nndarray\n(K\x05t\x81.",
    "PERSID": b"Pname\n.",
    "EXT1": b"\x80\x02\x82\x01.",
    "STACK_GLOBAL": b"\x80\x04\x8c\x02os\x8c\x06system\x93\x8c\x04true\x85R.",
    "a dotted name": b"\x80\x04\x8c\x05numpy\x8c\x11ndarray.__class__\x93.",
    "a dotted module": b"\x80\x04\x8c\x12numpy.core.numeric\x8c\x09__class__\x93.",
    "codecs of another kind": b"c_codecs\nencode\n(U\x01aU\x03zipt" + b"R.",
    "bytes of a size": b"c__builtin__\nbytes\n(J\xff\xff\xff\x7ftR.",
    "codecs.decode": b"c_codecs\ndecode\n(U\x01aU\x06latin1tR.",
    "a call of ndarray": b"cnumpy\nndarray\n(J\xff\xff\xff\x7ftR.",
    "another class for the array": ARRAY + b"(cnumpy\ndtype\nK\x00\x85U\x01btR.",
    "a large array at once": ARRAY + b"(cnumpy\nndarray\nJ\xff\xff\xff\x7f\x85U\x01btR.",
    "an array without state": ARRAY + b"(cnumpy\nndarray\nK\x00\x85U\x01btR.",
    "a shape that lies": ARRAY + b"(cnumpy\nndarray\nK\x00\x85U\x01btR(K\x01K\x09\x85" + U1
    + b"\x89U\x01atb.",
    "a negative shape": ARRAY + b"(cnumpy\nndarray\nK\x00\x85U\x01btR(K\x01"
    + b"J\xff\xff\xff\xff\x85" + U1 + b"\x89U\x00tb.",
    "a list for bytes": ARRAY + b"(cnumpy\nndarray\nK\x00\x85U\x01btR(K\x01K\x01\x85" + U1
    + b"\x89]K\x01atb.",
    "an object dtype": b"cnumpy\ndtype\n(U\x02O8K\x00K\x01tR.",
    "a huge dtype": b"cnumpy\ndtype\n(U\x0aV999999999K\x00K\x01tR.",
    "a dtype of parts": U1.replace(b"NNNJ", b"N](U\x01atJ") + b".",
    "a dtype of another order": U1.replace(b"U\x01|", b"U\x01!") + b".",
    "a dtype with half a state": b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tRK\x01b.",
    "an array with half a state": ARRAY + b"(cnumpy\nndarray\nK\x00\x85U\x01btRK\x01b.",
    "a number for a text": b"cnumpy\ndtype\n(K\x01K\x00K\x01tR.",
    "a dtype alone": b"cnumpy\ndtype\n(U\x02u1K\x00K\x01tR.",
    "a name alone": b"cnumpy\ndtype\n.",
    "a change of a name": b"cnumpy\ndtype\n}S'call'\nK\x01sb.",
    "a change of a name's slots": b"cnumpy\ndtype\n(N}S'call'\nK\x01stb.",
    "a scalar with too many bytes": b"cnumpy.core.multiarray\nscalar\n(" + U1 + b"U\x03abctR.",
    "a far memory cell": b"\x80\x02]r\xff\xff\xff\x7f.",
    "a far memory cell in words": b"]p99999999999\n.",
    "a bytearray it does not hold": b"\x80\x05\x96" + struct.pack("<Q", 1 << 40) + b"a.",
    "bytes it does not hold": b"\x80\x04\x8e" + struct.pack("<Q", 1 << 62) + b"a.",
    "a list in itself": b"]q\x00h\x00a.",
    "a thousand laughs": b"]q\x00" + b"".join(
        b"](" + b"h" + bytes([level]) + b"h" + bytes([level]) + b"h" + bytes([level])
        + b"h" + bytes([level]) + b"eq" + bytes([level + 1]) for level in range(15)) + b".",
    "too deep": b"]" * 5000 + b"a" * 4999 + b".",
    "a protocol of the future": b"\x80\x09N.",
    "nothing": b"",
    "no end": b"\x80\x02]",
    "an empty stack": b"a.",
    "not a pickle": b"PK\x03\x04 something else",
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_hostile_programs(tmp_path, monkeypatch, name):
    monkeypatch.setattr(os, "system", lambda command: pytest.fail("it ran"))
    with pytest.raises(DataError, match=r"data\.pkl is not a pickle of plain data: "):
        read_plain(put(tmp_path, PROGRAMS[name]))
    content, _ = python2_batch()
    read_plain(put(tmp_path, content))  # and nothing of the reader was changed


def test_limits(tmp_path, monkeypatch):
    path = put(tmp_path, pickle.dumps(list(range(100))))
    with pytest.raises(DataError, match=r"has \d+ bytes, more than the 50 that are read"):
        read_plain(path, max_bytes=50)
    monkeypatch.setattr(plain_pickle, "MAX_STEPS", 50)
    with pytest.raises(DataError, match="more than 50 instructions"):
        read_plain(path)
    with pytest.raises(DataError, match="is not a file"):
        read_plain(tmp_path / "gone")


def colliding_keys(count):
    """Integers that have one hash, so that a dict of them takes quadratic time."""
    prime = (1 << 61) - 1
    numbers = [((place + 1) * prime).to_bytes(10, "little") for place in range(count)]
    return b"}(" + b"".join(b"\x8a\x0a" + number + b"N" for number in numbers) + b"u."


def crowding_keys(count):
    """Integers of 64 bits that a dict looks for in the same places, one after the other."""
    numbers = [(place << 40).to_bytes(9, "little") for place in range(count)]
    return b"}(" + b"".join(b"\x8a\x09" + number + b"N" for number in numbers) + b"u."


def far_cells(count):
    """Memory cells with numbers that are far apart, as many as there are instructions."""
    cells = [(place * 2**13) % 1_000_000 for place in range(count)]
    return b"N" + b"".join(b"r" + struct.pack("<I", cell) for cell in cells) + b"."


SLOW = {
    "a key of shared pairs": b"}N" + b"2\x86" * 40 + b"Ns.",
    "shared pairs from memory": b"}Nq\x00" + b"h\x00\x86q\x00" * 40 + b"Ns.",
    "a key of nested tuples": b"}N" + b"\x85" * 400_000 + b"Ns.",
    "nested tuples": b"N" + b"\x85" * 400_000 + b".",
    "nested lists": b"]" * 100_000 + b"a" * 99_999 + b".",
    "nested marks": b"(" * 300_000 + b"N.",
    "colliding integers": colliding_keys(40_000),
    "crowding integers": crowding_keys(40_000),
    "an integer for a key": b"}K\x01Ns.",
    "a tuple for a key": b"}N\x85Ns.",
    "a number for a key": b"}G?\xf0\x00\x00\x00\x00\x00\x00Ns.",
    "one text made to many bytes": b"(c_codecs\nencode\nq\x01X" + struct.pack("<I", 1 << 20)
    + b"a" * (1 << 20) + b"q\x00" + b"h\x01h\x00\x8c\x06latin1\x86R" * 100_000 + b"t.",
    "a long number": b"\x8b" + struct.pack("<i", 5_000_000) + b"\x7f" * 5_000_000 + b".",
    "a list in two places": b"](]q\x00h\x00e.",
}  # fmt: skip


@pytest.mark.parametrize("name", SLOW)
def test_programs_made_to_take_long_are_refused_at_once(tmp_path, name):
    began = time.process_time()
    with pytest.raises(DataError, match=r"data\.pkl is not a pickle of plain data: "):
        read_plain(put(tmp_path, SLOW[name]))
    assert time.process_time() - began < 5


def test_keys_are_texts_and_bytes(tmp_path):
    keys = {"a": 1, b"b": 2}
    assert read_plain(put(tmp_path, pickle.dumps(keys))) == keys
    for odd in (3, -(1 << 63), 1 << 70, 0.5, None, (1,), True):
        with pytest.raises(DataError, match="a key that is no text"):
            read_plain(put(tmp_path, pickle.dumps({odd: 1})))


def test_memory_cells_are_no_keys(tmp_path):
    began = time.process_time()
    assert read_plain(put(tmp_path, far_cells(200_000))) is None
    assert time.process_time() - began < 10
    gaps = b"\x80\x04](\x8c\x01aq\x05\x94\x8c\x01b\x94h\x05h\x01h\x02e."  # cells 5, 1 and 2
    assert read_plain(put(tmp_path, gaps)) == ["a", "b", "a", "a", "b"]


@given(st.data())
def test_damage_never_escapes(tmp_path_factory, data):
    content = bytearray(python2_batch(1)[0] if data.draw(st.booleans()) else pickle.dumps(PLAIN))
    for _ in range(data.draw(st.integers(1, 4))):
        content[data.draw(st.integers(0, min(len(content), 400) - 1))] = data.draw(
            st.integers(0, 255)
        )
    path = put(tmp_path_factory.mktemp("fuzz"), bytes(content))
    with contextlib.suppress(DataError):
        read_plain(path)
