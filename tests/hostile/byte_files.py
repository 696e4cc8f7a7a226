"""Hostile files: clients' safetensors, states, pickles, IDX, parquet, images, tables, marks."""

import base64
import contextlib
import functools
import gzip
import io
import json
import pickle
import struct
import tempfile
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from safetensors.torch import save
from tests.hostile.damage import damaged, header_file, twisted
from tests.hostile.engine import Target
from tests.hostile.submissions import LAYOUT, check_shown, strict

from datadefense import Gate, create, defend
from datadefense.core.round_files import client_files, read_submissions, read_tensors
from datadefense.core.storage import UNSEALED_FORMAT, StateError, load_state, save_state
from datadefense.data.ardis import read_ardis
from datadefense.data.errors import DataError
from datadefense.data.idx import read_idx_examples
from datadefense.data.image_files import from_file
from datadefense.data.parquet import read_images, read_texts
from datadefense.data.safe_pickle import read_cifar, read_image_array, read_plain
from datadefense.data.sentiment140 import read_tweets_csv
from datadefense.defense_sets.folder import (
    EXAMPLES,
    DefenseSetSource,
    read_defense_folder,
    write_defense_folder,
)
from datadefense.defense_sets.marks import MARKS, read_marks
from datadefense.testing.toy import toy_server

MODEL = LAYOUT.unflatten(torch.linspace(-1, 1, LAYOUT.dim))
LONGEST = 1100
"""Most characters of an error about data: a path, and what was wrong."""


def parts_of(content: bytes) -> list:
    """Return bytes as parts: every 64 bytes are one."""
    return [base64.b64encode(content[at : at + 64]).decode() for at in range(0, len(content), 64)]


def content_of(parts) -> bytes:
    return b"".join(map(base64.b64decode, parts))


def client_file(random):
    whole = save(MODEL, {"num_examples": "10"})
    length = struct.unpack("<Q", whole[:8])[0]
    header, content = json.loads(whole[8 : 8 + length]), whole[8 + length :]
    return random.choice(("fedavg", "median")), parts_of(header_file(random, header, content))


def check_client_file(setting, parts, folder):
    """Whatever one client's file is, the two others' are admitted and the round goes on."""
    clients = folder / "clients"
    clients.mkdir()
    (folder / "model").write_bytes(save(MODEL))
    for name in ("a", "z"):
        (clients / f"{name}.safetensors").write_bytes(save(MODEL, {"num_examples": "10"}))
    (clients / "hostile.safetensors").write_bytes(content_of(parts))
    model = read_tensors(folder / "model")
    params = LAYOUT.flatten(model.tensors)
    submissions = read_submissions(client_files(clients), model, LAYOUT)
    admission = Gate(LAYOUT).admit(1, params, submissions, expected=3)
    admitted = set(admission.round.client_ids)
    assert {"a", "z"} <= admitted <= {"a", "hostile", "z"}
    assert len(admission.rejected) == 3 - len(admitted)
    for rejection in admission.rejected:
        check_shown(rejection.reason)
    defense, server = create(setting), toy_server()
    result = defend(defense, defense.init(server, params), admission, params, server)
    assert bool(result.params.isfinite().all())
    strict(dict(result.report))


@functools.cache
def first_state(name):
    return create(name).init(toy_server(), torch.zeros(LAYOUT.dim))


@functools.cache
def states() -> dict:
    """Return for some defenses the bytes of a state file."""
    found = {}
    for name in ("sparsefed", "ndc-adaptive", "datadefense", "rfa"):
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "state"
            save_state(path, first_state(name))
            found[name] = path.read_bytes()
    return found


def state(random):
    name = random.choice(list(states()))
    whole = states()[name]
    if random.random() < 0.3:
        return name, parts_of(damaged(random, whole))
    length = struct.unpack("<Q", whole[:8])[0]
    header, content = json.loads(whole[8 : 8 + length]), whole[8 + length :]
    if random.random() < 0.6:
        header["__metadata__"] = {"format": UNSEALED_FORMAT, "tree": twisted_tree(random, header)}
        text = json.dumps(header).encode()
        return name, parts_of(struct.pack("<Q", len(text)) + text + content)
    return name, parts_of(header_file(random, header, content))


def twisted_tree(random, header) -> str:
    """Return the plain part of a state, twisted; what has no checksum gets past the first check."""
    tree = json.loads(header["__metadata__"]["tree"])
    for _ in range(random.randint(1, 4)):
        tree = twisted(random, tree)
    text = json.dumps(tree)
    if random.randrange(10) == 0:
        text = '{"items": [' * 20_000 + text + "]}" * 20_000
    return text


def check_state(setting, parts, folder):
    """A state file is read, or it is a StateError; nothing else."""
    path = folder / "state"
    path.write_bytes(content_of(parts))
    like = first_state(setting)
    with contextlib.suppress(StateError):
        assert type(load_state(path, like=like)) is type(like)


def refused(read):
    """Read, or be told why not in one short printable line."""
    try:
        read()
    except DataError as error:
        text = str(error)
        assert text.isprintable(), repr(text)
        assert len(text) <= LONGEST


@functools.cache
def samples() -> dict:
    """Return a small sound file of each kind."""
    pixels = np.arange(2 * 3072, dtype=np.uint8).reshape(2, 3072)
    batch = {"data": pixels, "labels": [1, 2], "filenames": ["a", "b"]}
    digits = bytes([0, 0, 8, 3]) + struct.pack(">3I", 2, 28, 28) + bytes(2 * 784)
    found = {f"pickle {version}": pickle.dumps(batch, version) for version in range(6)}
    found |= {"array": pickle.dumps(pixels.reshape(2, 32, 32, 3), 2)}
    found |= {"idx": digits, "idx gzip": gzip.compress(digits)}
    for kind in ("PNG", "JPEG", "WEBP"):
        buffer = io.BytesIO()
        Image.fromarray(pixels.reshape(2, 32, 32, 3)[0]).save(buffer, kind)
        found[kind] = buffer.getvalue()
    with tempfile.TemporaryDirectory() as folder:
        for kind, inputs in (
            ("image folder", torch.arange(5 * 75, dtype=torch.uint8).view(5, 3, 5, 5)),
            ("text folder", tuple(f"text {place}" for place in range(5))),
            ("token folder", torch.arange(20).view(5, 4)),
        ):
            place = Path(folder) / kind
            source = DefenseSetSource(inputs, torch.arange(5), torch.arange(5) < 2)
            write_defense_folder(source, place)
            found[kind] = (place / EXAMPLES).read_bytes()
            found["marks"] = (place / MARKS).read_bytes()
    found["ardis"] = b"\n".join(b" ".join([b"1.5"] * 784) for _ in range(2))
    found["tweets"] = b'"0","1","d","q","user","text"\n"4","1","d","q","user","more"\n'
    return found


def data_file(random):
    kind = random.choice(list(samples()))
    content = samples()[kind]
    if kind == "idx gzip" and random.random() < 0.5:
        return kind, parts_of(gzip.compress(damaged(random, gzip.decompress(content))))
    if kind.startswith("pickle") and random.random() < 0.3:
        return kind, parts_of(program(random))
    return kind, parts_of(damaged(random, content))


PIECES = (b"N", b"(", b"]", b"}", b")", b"K\x01", b"U\x01a", b"a", b"e", b"s", b"u", b"t",
              b"\x85", b"\x86", b"\x87", b"q\x00", b"h\x00", b"q\x01", b"h\x01", b"R", b"b", b"2",
              b"0", b"cnumpy\ndtype\n", b"cnumpy\nndarray\n", b"cos\nsystem\n", b"U\x02u1",
              b"cnumpy.core.multiarray\n_reconstruct\n", b"\x94", b"\x93", b"J\xff\xff\xff\x7f",
              b"\x8a\x09" + b"\xff" * 9, b"c_codecs\nencode\n",
          b"X\x01\x00\x00\x00\xe9")  # fmt: skip


def program(random) -> bytes:
    """Return a pickle of random instructions, most of which have something to work on."""
    return b"".join(random.choices(PIECES, k=random.choice((20, 200, 5_000)))) + b"."


def check_data_file(setting, parts, folder):
    """A file of a data set is read, or it is a DataError; nothing else."""
    path = folder / EXAMPLES
    path.write_bytes(content_of(parts))
    if setting.startswith("pickle"):
        refused(lambda: read_plain(path))
        refused(lambda: read_cifar([path], "labels"))
    elif setting == "array":
        refused(lambda: read_image_array(path))
    elif setting.startswith("idx"):
        labels = folder / "labels"
        labels.write_bytes(bytes([0, 0, 8, 1]) + struct.pack(">I", 2) + bytes(2))
        refused(lambda: read_idx_examples(path, labels))
        refused(lambda: read_idx_examples(labels, path))
    elif setting in ("PNG", "JPEG", "WEBP"):
        refused(lambda: from_file(path.read_bytes(), "image"))
    elif setting.endswith("folder"):
        (folder / MARKS).write_bytes(samples()["marks"])
        refused(lambda: read_defense_folder(folder))
        refused(lambda: read_texts(path, "id", "label"))
        refused(lambda: read_images(path, "image", "label"))
    elif setting == "marks":
        refused(lambda: read_marks(path, ["a", "b"]))
    elif setting == "ardis":
        refused(lambda: read_ardis(path, path))
    else:
        refused(lambda: read_tweets_csv(path))


TARGETS = (
    Target("client-files", client_file, check_client_file, times=0, turns=4),
    Target("states", state, check_state, times=0, turns=2),
    Target("data-files", data_file, check_data_file, times=0, turns=6),
)
