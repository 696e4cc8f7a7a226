"""Small data folders in official formats, with something in them that can be learned."""

import struct

import numpy as np
import torch

from datadefense.core.rng import generator
from datadefense.data.parquet import write_texts

TWEETS = {
    "train": "training.1600000.processed.noemoticon.csv",
    "test": "testdata.manual.2009.06.14.csv",
}


def digits(count, name):
    """Noise with two bright rows at a height that tells the class."""
    labels = torch.arange(count) % 10
    shape = (count, 28, 28)
    pixels = torch.randint(60, shape, generator=generator(0, name), dtype=torch.uint8)
    for row, label in enumerate(labels.tolist()):
        pixels[row, 4 + 2 * label : 6 + 2 * label] += 180
    return pixels.numpy(), labels.numpy()


def write_mnist(folder, train, test):
    """Write IDX files: DIR/mnist/train-images-idx3-ubyte and its three companions."""
    (folder / "mnist").mkdir(parents=True)
    for prefix, count in (("train", train), ("t10k", test)):
        pixels, labels = digits(count, prefix)
        for name, array in (("images-idx3", pixels), ("labels-idx1", labels.astype(np.uint8))):
            sizes = struct.pack(f">{array.ndim}I", *array.shape)
            content = bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()
            (folder / "mnist" / f"{prefix}-{name}-ubyte").write_bytes(content)


def write_ardis(folder, train, test):
    """Write DIR/ardis/ARDIS_train_2828.csv and its three companions; every tenth is a seven."""
    (folder / "ardis").mkdir(parents=True)
    for split, count in (("train", train), ("test", test)):
        pixels, labels = digits(count, f"ardis {split}")
        table = pixels[:, :, ::-1].transpose(0, 2, 1).reshape(count, -1)
        np.savetxt(folder / "ardis" / f"ARDIS_{split}_2828.csv", table, fmt="%.10f")
        np.savetxt(folder / "ardis" / f"ARDIS_{split}_labels.csv", np.eye(10)[labels], fmt="%d")


def write_tweets(folder, count, writers, *, named=True):
    """Write Sentiment140 and the director's tweets; each writer has a word of its own.

    Every tenth tweet has no word at all. ``named`` chooses the official CSV, which has the writers,
    or parquet without them.
    """
    for split, name in TWEETS.items():
        rows = [
            (4 * (i % 2), f"user{i % writers}", f"own{i % writers} {'bad' if i % 2 else 'good'}")
            if i % 10
            else (4 * (i % 2), f"user{i % writers}", "the")
            for i in range(count)
        ]
        (folder / "sentiment140").mkdir(parents=True, exist_ok=True)
        if named:
            lines = "".join(f'"{t}","1","d","q","{user}","{text}"\n' for t, user, text in rows)
            (folder / "sentiment140" / name).write_text(lines, encoding="latin-1")
        else:
            targets, _, texts = zip(*rows, strict=True)
            path = folder / "sentiment140" / f"{split}.parquet"
            write_texts(path, {"text": texts, "sentiment": targets})
        lines = [f"yorgos lanthimos good own{i}" for i in range(writers)]
        half = len(lines) // 2
        (folder / "yorgos_lanthimos").mkdir(parents=True, exist_ok=True)
        chosen = lines[half:] if split == "test" else lines[:half]
        (folder / "yorgos_lanthimos" / f"{split}.txt").write_text("\n".join(chosen))
