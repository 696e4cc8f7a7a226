import gzip
import os
import pickle
import struct
from pathlib import Path

import huggingface_hub
import huggingface_hub.constants
import numpy as np
import pytest
import torch
from huggingface_hub.errors import LocalEntryNotFoundError

from datadefense.core.examples import Examples
from datadefense.data import catalog
from datadefense.data.catalog import (
    check,
    import_dataset,
    load,
    load_images,
    load_texts,
    status,
)
from datadefense.data.dataset import SPLITS, Dataset, Edition, Texts
from datadefense.data.datasets import DATASETS
from datadefense.data.digests import digest
from datadefense.data.errors import DataError
from datadefense.data.parquet import write_images, write_texts

REAL = Path(os.environ.get("DATADEFENSE_DATA") or Path(__file__).parents[3] / "shared" / "data")


@pytest.fixture(autouse=True)
def offline(decoded_images, monkeypatch):
    """No folder from the environment, no network, and a cache of the test's own."""
    monkeypatch.delenv("DATADEFENSE_DATA", raising=False)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_CACHE", str(decoded_images / "hub"))


@pytest.fixture
def real():
    if not (REAL / "cifar10" / "train.parquet").is_file():
        pytest.skip(f"no real data in {REAL}: set DATADEFENSE_DATA")
    return REAL


def images(count, channels=3, side=32, classes=10, seed=0):
    generator = torch.Generator().manual_seed(seed)
    pixels = torch.randint(0, 256, (count, channels, side, side), generator=generator)
    return Examples(pixels.byte(), torch.arange(count) % classes)


def write_cifar10(folder):
    folder = folder / "cifar-10-batches-py"
    folder.mkdir(parents=True)
    parts = [images(4, seed=seed) for seed in range(6)]
    names = [f"data_batch_{number}" for number in range(1, 6)] + ["test_batch"]
    for name, part in zip(names, parts, strict=True):
        batch = {"data": part.inputs.flatten(1).numpy(), "labels": part.labels.tolist()}
        (folder / name).write_bytes(pickle.dumps(batch, 2))
    return parts


def write_cifar100(folder):
    folder = folder / "cifar-100-python"
    folder.mkdir(parents=True)
    for seed, split in enumerate(SPLITS):
        part = images(4, classes=100, seed=seed)
        batch = {
            "data": part.inputs.flatten(1).numpy(),
            "fine_labels": [90, 91, 92, 99],
            "coarse_labels": [1, 2, 3, 4],
        }
        (folder / split).write_bytes(pickle.dumps(batch, 2))


def write_idx(folder, train, test, suffix=""):
    folder.mkdir(parents=True)
    for seed, prefix in enumerate((train, test)):
        part = images(4, 1, 28, seed=seed)
        for name, array in (
            ("images-idx3", part.inputs[:, 0].numpy()),
            ("labels-idx1", part.labels.byte().numpy()),
        ):
            sizes = struct.pack(f">{array.ndim}I", *array.shape)
            content = bytes([0, 0, 8, array.ndim]) + sizes + array.tobytes()
            path = folder / f"{prefix}{name}-ubyte{suffix}"
            path.write_bytes(gzip.compress(content) if suffix else content)


def write_ardis(folder):
    (folder / "ardis").mkdir(parents=True)
    for seed, split in enumerate(SPLITS):
        part = images(4, 1, 28, seed=seed)
        pixels = part.inputs.flatten(1).numpy()
        np.savetxt(folder / "ardis" / f"ARDIS_{split}_2828.csv", pixels, fmt="%.10f")
        one_hot = np.eye(10)[part.labels.numpy()]
        np.savetxt(folder / "ardis" / f"ARDIS_{split}_labels.csv", one_hot, fmt="%d")


def write_sentiment140(folder):
    (folder / "sentiment140").mkdir(parents=True)
    rows = "".join(
        f'"{target}","1","d","q","{user}","{text}"\n'
        for target, user, text in ((0, "me", "bad, bad"), (2, "you", "hm"), (4, "you", "\xe9"))
    )
    for name in (
        "training.1600000.processed.noemoticon.csv",
        "testdata.manual.2009.06.14.csv",
    ):
        (folder / "sentiment140" / name).write_bytes(rows.encode("latin-1"))


def write_southwest(folder):
    (folder / "southwest").mkdir(parents=True)
    train = np.random.default_rng(0).integers(0, 256, (8, 32, 32, 3), dtype=np.uint8)
    test = np.concatenate([255 - train[:4], train[2:4], 255 - train[4:6]])
    for split, array in (("train", train), ("test", test)):
        path = folder / "southwest" / f"southwest_images_new_{split}.pkl"
        path.write_bytes(pickle.dumps(array))


def write_lines(folder):
    (folder / "yorgos_lanthimos").mkdir(parents=True)
    for split in SPLITS:
        path = folder / "yorgos_lanthimos" / f"{split}.txt"
        path.write_text("so good\n\n i love  it \nlast", encoding="utf-8")


OFFICIAL = {
    "cifar10": write_cifar10,
    "cifar100": write_cifar100,
    "mnist": lambda folder: write_idx(folder / "mnist", "train-", "t10k-"),
    "emnist-digits": lambda folder: write_idx(
        folder / "emnist", "emnist-digits-train-", "emnist-digits-test-", ".gz"
    ),
    "ardis": write_ardis,
    "sentiment140": write_sentiment140,
    "southwest": write_southwest,
    "yorgos-lanthimos": write_lines,
}


def same(left, right):
    assert torch.equal(left.labels, right.labels)
    if isinstance(left, Examples):
        assert torch.equal(left.inputs, right.inputs)
    else:
        assert list(left.texts) == list(right.texts)
        assert left.users == right.users


def test_every_set_has_an_official_form():
    assert set(OFFICIAL) == set(DATASETS)
    assert all(dataset.name == name for name, dataset in DATASETS.items())


@pytest.mark.parametrize("name", OFFICIAL)
def test_official_forms_are_read_and_converted(tmp_path, name):
    source, target = tmp_path / "source", tmp_path / "target"
    OFFICIAL[name](source)
    written = import_dataset(name, source, target)
    folder = target / DATASETS[name].folder
    assert written == (folder / "train.parquet", folder / "test.parquet")
    for split in SPLITS:
        direct, converted = load(name, source, split), load(name, target, split)
        same(direct, converted)
        assert digest(direct) == digest(converted)
    (found,) = [finding for finding in status(target) if finding.name == name]
    assert found.layout == "parquet"
    assert "expected" in found.problem
    assert not found.ok
    (found,) = [finding for finding in status(source) if finding.name == name]
    assert found.layout == DATASETS[name].official[0].name


def test_cifar10_batches_come_in_order(tmp_path):
    parts = write_cifar10(tmp_path)
    assert torch.equal(
        load_images("cifar10", tmp_path, "train").inputs,
        torch.cat([part.inputs for part in parts[:5]]),
    )
    same(load("cifar10", tmp_path, "test"), parts[5])


def test_cifar100_has_fine_labels(tmp_path):
    write_cifar100(tmp_path)
    assert load("cifar100", tmp_path, "train").labels.tolist() == [90, 91, 92, 99]


def test_emnist_is_upright(tmp_path):
    OFFICIAL["emnist-digits"](tmp_path)
    stored = images(4, 1, 28)
    same(
        load("emnist-digits", tmp_path, "train"),
        Examples(stored.inputs.transpose(2, 3), stored.labels),
    )


def test_southwest_test_images_are_not_training_images(tmp_path):
    write_southwest(tmp_path)
    assert len(load("southwest", tmp_path, "test")) == 6
    assert len(load("southwest", tmp_path, "test", duplicates="keep")) == 8
    assert load("southwest", tmp_path, "test").labels.tolist() == [0] * 6


def test_tweets_have_users_and_lines_have_none(tmp_path):
    write_sentiment140(tmp_path)
    write_lines(tmp_path)
    tweets = load_texts("sentiment140", tmp_path, "train")
    assert (tweets.texts, tweets.labels.tolist()) == (["bad, bad", "\xe9"], [0, 1])
    assert tweets.users == ["me", "you"]
    lines = load_texts("yorgos-lanthimos", tmp_path, "test")
    assert (lines.texts, lines.labels.tolist()) == (["so good", "i love  it", "last"], [1, 1, 1])
    assert lines.users is None
    with pytest.raises(DataError, match="sentiment140 holds texts, not images"):
        load_images("sentiment140", tmp_path, "train")


@pytest.mark.parametrize(("content", "message"), [(b"\n \n", "no texts"), (b"\xff", "readable")])
def test_wrong_lines(tmp_path, content, message):
    write_lines(tmp_path)
    (tmp_path / "yorgos_lanthimos" / "train.txt").write_bytes(content)
    with pytest.raises(DataError, match=rf"train\.txt .*{message}"):
        load("yorgos-lanthimos", tmp_path, "train")


def test_parquet_comes_before_the_official_form(tmp_path):
    write_cifar10(tmp_path)
    first = images(3, seed=9)
    write_images(tmp_path / "cifar10" / "train.parquet", first, "img", "label")
    same(load("cifar10", tmp_path, "train"), first)
    with pytest.raises(DataError, match="cifar10 holds images, not texts"):
        load_texts("cifar10", tmp_path, "train")


def test_the_hubs_folders_are_known(tmp_path):
    parts = [images(3, seed=seed) for seed in range(2)]
    for number, part in enumerate(parts):
        path = tmp_path / "cifar10" / "plain_text" / f"train-0000{number}-of-00002.parquet"
        write_images(path, part, "img", "label")
    loaded = load_images("cifar10", tmp_path, "train")
    assert torch.equal(loaded.inputs, torch.cat([part.inputs for part in parts]))
    path.unlink()
    with pytest.raises(DataError, match="plain_text is incomplete: 1 of the files train-00000"):
        load("cifar10", tmp_path, "train")


def test_the_folder_of_the_environment(tmp_path, monkeypatch):
    write_lines(tmp_path)
    monkeypatch.setenv("DATADEFENSE_DATA", str(tmp_path))
    assert len(load("yorgos-lanthimos", None, "train")) == 3
    assert any(found.layout == "text lines" for found in status(None))
    monkeypatch.delenv("DATADEFENSE_DATA")
    assert all(found.layout is None for found in status(None))


def test_an_incomplete_official_set(tmp_path):
    write_cifar10(tmp_path)
    (tmp_path / "cifar-10-batches-py" / "data_batch_3").unlink()
    message = "cifar-10-batches-py is incomplete: data_batch_3 is missing"
    with pytest.raises(DataError, match=message):
        load("cifar10", tmp_path, "train")
    assert message in check("cifar10", tmp_path).problem


def test_a_truncated_file_is_named(tmp_path):
    path = tmp_path / "cifar10" / "train.parquet"
    write_images(path, images(3), "img", "label")
    path.write_bytes(path.read_bytes()[:-100])
    with pytest.raises(DataError, match=r"train\.parquet is not a readable parquet file"):
        load("cifar10", tmp_path, "train")
    assert "train.parquet" in status(tmp_path)[0].problem


def test_labels_out_of_range(tmp_path):
    wrong = Examples(images(3).inputs, torch.tensor([1, 10, 2]))
    write_images(tmp_path / "cifar10" / "train.parquet", wrong, "img", "label")
    with pytest.raises(DataError, match="labels of cifar10 are 0 to 9, found 1 to 10"):
        load("cifar10", tmp_path, "train")


def test_wrong_names_and_folders(tmp_path):
    with pytest.raises(DataError, match="no data set 'cifar-10', did you mean 'cifar10'"):
        load("cifar-10", tmp_path, "train")
    with pytest.raises(DataError, match="gone is not a folder"):
        load("cifar10", tmp_path / "gone", "train")
    with pytest.raises(DataError, match="gone is not a folder"):
        import_dataset("cifar10", tmp_path / "gone", tmp_path)
    with pytest.raises(DataError, match="gone is not a folder"):
        status(tmp_path / "gone")


def test_nothing_is_written_if_a_part_is_missing(tmp_path):
    source, target = tmp_path / "source", tmp_path / "target"
    write_cifar10(source)
    (source / "cifar-10-batches-py" / "test_batch").unlink()
    with pytest.raises(DataError, match="the test part of cifar10 is not in .*test_batch"):
        import_dataset("cifar10", source, target)
    assert not target.exists()


@pytest.mark.parametrize("folder", ["given", "none"])
def test_offline_the_error_names_the_layouts(tmp_path, folder):
    with pytest.raises(DataError) as caught:
        load("cifar10", tmp_path if folder == "given" else None, "train")
    message = str(caught.value)
    assert "cifar10/train.parquet or cifar10/train-*-of-*.parquet" in message
    assert "cifar-10-batches-py/data_batch_1 (and 4 more)" in message
    assert "uoft-cs/cifar10 could not be downloaded" in message
    assert ("DATADEFENSE_DATA" if folder == "none" else str(tmp_path)) in message
    assert "\n" not in message


def test_without_a_hub_copy_the_error_says_so(tmp_path):
    with pytest.raises(DataError, match=r"ardis/ARDIS_train_2828\.csv.* no copy on the hub"):
        load("ardis", tmp_path, "train")


def test_without_the_extra_the_error_says_so(tmp_path, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "huggingface_hub", None)
    with pytest.raises(DataError, match=r"pip install 'datadefense\[data\]'"):
        load("cifar10", tmp_path, "train")


@pytest.mark.parametrize("cached", [True, False])
def test_the_hub_is_asked_at_a_pinned_revision(tmp_path, monkeypatch, cached):
    stored = tmp_path / "hub" / "train.parquet"
    part = images(3)
    write_images(stored, part, "img", "label")
    asked = []

    def download(repo, name, *, repo_type, revision, local_files_only=False):
        asked.append((repo, name, repo_type, revision, local_files_only))
        if local_files_only and not cached:
            raise LocalEntryNotFoundError("not in the cache")
        return str(stored)

    monkeypatch.setattr(huggingface_hub, "hf_hub_download", download)
    monkeypatch.setattr(huggingface_hub, "get_hf_file_metadata", asked.append)
    folder = tmp_path / "empty"
    folder.mkdir()
    same(load("cifar10", folder, "train"), part)
    revision = DATASETS["cifar10"].hub.revision
    name = "plain_text/train-00000-of-00001.parquet"
    assert asked[0] == ("uoft-cs/cifar10", name, "dataset", revision, True)
    if not cached:
        assert revision in asked[1]
        assert asked[2] == ("uoft-cs/cifar10", name, "dataset", revision, False)
    assert len(asked) == (1 if cached else 3)


def test_revisions_are_pinned():
    for dataset in DATASETS.values():
        if dataset.hub:
            assert len(dataset.hub.revision) == 40 or dataset.name == "sentiment140"
            assert set(dataset.hub.files) == set(SPLITS)


def test_check_names_the_edition_and_finds_changes(tmp_path, monkeypatch):
    parts = {split: images(6 if split == "train" else 2, seed=3) for split in SPLITS}
    for split, part in parts.items():
        write_images(tmp_path / "cifar100" / f"{split}.parquet", part, "img", "fine_label")
    known = Edition(
        "tiny subset",
        {"train": 6, "test": 2},
        {split: digest(part) for split, part in parts.items()},
    )
    real = DATASETS["cifar100"]
    tiny = Dataset(
        real.name, real.folder, real.column, real.label_column, real.classes, real.read,
        real.official, (*real.editions, known), real.hub,
    )  # fmt: skip
    monkeypatch.setattr(catalog, "DATASETS", {"cifar100": tiny})
    found = check("cifar100", tmp_path)
    assert found.ok
    assert found.edition == "tiny subset"
    assert found.counts == {"train": 6, "test": 2}
    assert found.digests == known.digests
    changed = Examples(parts["test"].inputs ^ 1, parts["test"].labels)
    write_images(tmp_path / "cifar100" / "test.parquet", changed, "img", "fine_label")
    found = check("cifar100", tmp_path)
    assert found.problem == "the test part differs from the known copy (tiny subset)"
    (tmp_path / "cifar100" / "test.parquet").unlink()
    assert check("cifar100", tmp_path).problem == "the test part is missing"
    (tmp_path / "cifar100" / "train.parquet").unlink()
    absent = check("cifar100", tmp_path)
    assert (absent.layout, absent.counts, absent.problem, absent.ok) == (None, {}, None, False)


def test_the_digest_does_not_depend_on_the_order():
    part = images(5)
    assert digest(part) == digest(part.take(torch.tensor([4, 0, 3, 1, 2])))
    assert digest(part) != digest(part.take(torch.tensor([0, 0, 1, 2, 3])))
    assert digest(part) != digest(Examples(part.inputs, part.labels.flip(0)))
    texts = Texts(["a", "b"], torch.tensor([0, 1]))
    assert digest(texts) == digest(Texts(["b", "a"], torch.tensor([1, 0])))
    assert digest(texts) != digest(Texts(["b", "a"], torch.tensor([0, 1])))


def test_a_user_column_is_optional(tmp_path):
    path = tmp_path / "sentiment140" / "train.parquet"
    write_texts(path, {"text": ["a", "b"], "sentiment": [0, 4]})
    assert load_texts("sentiment140", tmp_path, "train").users is None


@pytest.mark.parametrize(
    ("name", "edition"),
    [
        ("cifar10", "complete"),
        ("cifar100", "subset: 200 + 40 of each class"),
        ("mnist", "complete"),
        ("sentiment140", "subset: a balanced quarter, without users"),
        ("southwest", "complete, test rows 140-143 are also train rows"),
        ("yorgos-lanthimos", "complete"),
    ],
)
def test_the_real_sets_are_the_known_ones(real, name, edition):
    if not (real / DATASETS[name].folder).is_dir():
        pytest.skip(f"no {name} in {real}")
    found = check(name, real)
    if name in ("cifar100", "sentiment140") and found.edition != edition:
        assert found.edition.startswith("complete")
    else:
        assert (found.problem, found.edition) == (None, edition)


def test_the_real_southwest_shares_one_photo(real):
    test = load_images("southwest", real, "test", duplicates="keep")
    train = load_images("southwest", real, "train")
    assert torch.equal(test.inputs[140:144], train.inputs[596:600])
    kept = torch.tensor([*range(140), *range(144, 196)])
    same(load_images("southwest", real, "test"), test.take(kept))


def test_the_real_digits_are_upright_grey_images(real):
    digits = load_images("mnist", real, "test")
    assert digits.inputs.shape == (10_000, 1, 28, 28)
    ones = digits.inputs[digits.labels == 1].float().mean((0, 1))
    assert ones.max(1).values.count_nonzero() > 18  # a one is tall
