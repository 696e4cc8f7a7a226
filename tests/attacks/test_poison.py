"""Attack sets: sizes, labels and groups, and what the pools of the real ones hold."""

import io
from pathlib import Path

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests.data.pictures import images, rows_of, task

from datadefense.attacks.poison import (
    CARS_TO_BIRDS,
    FISH_TO_BABIES,
    Flip,
    ardis_sevens,
    edge_case,
    label_flip,
    positive_tweets,
    southwest,
    trigger,
)
from datadefense.attacks.pools import PoolSizes, check_disjoint, split_pools
from datadefense.attacks.trigger_patch import TriggerPatch
from datadefense.core.content import rows_seen_in
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.data.text import Vocabulary
from datadefense.runs.parts import ServerSettings
from datadefense.tasks import TASKS

DATA = Path(__file__).parents[3] / "shared" / "data"


def test_label_flip_draws_the_sources_and_gives_the_target():
    train, test = task(2000, 10, "train"), task(500, 10, "test")
    flip = Flip(sources=(1, 3), target=2, num_train=300, num_test=80)
    attack_set = label_flip(train, test, flip, generator(0, "flip"))
    for part, whole_set, count in ((attack_set.train, train, 300), (attack_set.test, test, 80)):
        assert part.labels.tolist() == [2] * count
        drawn = rows_of(part.inputs)
        assert len(set(drawn)) == count
        of_sources = (whole_set.labels == 1) | (whole_set.labels == 3)
        assert set(drawn) <= set(rows_of(whole_set.inputs[of_sources]))
    again = label_flip(train, test, flip, generator(0, "flip"))
    assert again.train.inputs.equal(attack_set.train.inputs)
    other = label_flip(train, test, flip, generator(1, "flip"))
    assert not other.train.inputs.equal(attack_set.train.inputs)


def test_the_papers_numbers():
    assert Flip((1,), 2, 784, 196) == CARS_TO_BIRDS
    assert FISH_TO_BABIES.num_test == 20
    assert {name: task().attack_poison for name, task in TASKS.items()} == {
        "digits-edge": 66,
        "cifar10-label-flip": 100,
        "cifar10-southwest": 100,
        "cifar10-trigger": 100,
        "cifar100-trigger": 100,
        "emnist-ardis": 66,
        "sentiment-yl": 60,
    }
    assert ServerSettings().poison == 100


def test_trigger_patches_what_label_flip_draws():
    train, test = task(900, 3, "train"), task(300, 3, "test")
    flip = Flip((1,), 2, 250, 50)
    plain = label_flip(train, test, flip, generator(0, "t"))
    patched = trigger(train, test, flip, TriggerPatch(size=3, weight=1.0), generator(0, "t"))
    assert patched.train.labels.tolist() == [2] * 250
    for before, after in ((plain.train, patched.train), (plain.test, patched.test)):
        changed = (before.inputs != after.inputs).any(dim=1).sum(dim=(1, 2))
        assert 1 <= int(changed.min()) <= int(changed.max()) <= 9
    assert patched.train_groups.equal(plain.train_groups)
    check_disjoint(split_pools(patched, PoolSizes(100, 100), generator(0, "pools")))


def test_ardis_takes_the_sevens():
    train, test = task(2000, 10, "train", channels=1), task(300, 10, "test", channels=1)
    attack_set = ardis_sevens(train, test)
    assert rows_of(attack_set.train.inputs) == rows_of(train.inputs[train.labels == 7])
    assert attack_set.train.labels.tolist() == [1] * 200
    assert attack_set.test.labels.tolist() == [1] * 30
    pools = split_pools(attack_set, PoolSizes(66, 100), generator(0, "pools"))
    assert (len(pools.attacker), len(pools.defense), len(pools.test)) == (66, 100, 30)


def slow_groups(rows, group_size):
    """Groups by repeated merging: two rows are together if in one block or equal."""
    group = [index // group_size for index in range(len(rows))]
    changed = True
    while changed:
        changed = False
        for i in range(len(rows)):
            for j in range(i):
                linked = rows[i] == rows[j] or i // group_size == j // group_size
                if linked and group[i] != group[j]:
                    low, high = sorted((group[i], group[j]))
                    group = [low if g == high else g for g in group]
                    changed = True
    return group


@given(
    st.lists(st.integers(0, 25), min_size=1, max_size=12),
    st.lists(st.integers(0, 25), min_size=1, max_size=6),
    st.integers(1, 3),
)
def test_groups_with_an_equal_row_are_one(train, test, group_size):
    train, test = train * group_size, test * group_size
    attack_set = edge_case(torch.tensor(train)[:, None], torch.tensor(test)[:, None], 0, group_size)
    groups = attack_set.train_groups.tolist() + attack_set.test_groups.tolist()
    assert groups == slow_groups(train + test, group_size)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: label_flip(task(50, 10, "a"), task(50, 10, "b"), CARS_TO_BIRDS, generator(0)),
            "the training set must suffice: 784 <= examples of classes 1, got 5",
        ),
        (lambda: southwest(images(6, "a"), images(4, "b")), "whole groups of 4, got 6 rows"),
        (lambda: positive_tweets(torch.zeros(0, 3), torch.zeros(1, 3)), "got 0 rows"),
    ],
)
def test_bad_input_names_the_inequality(call, message):
    with pytest.raises(ValueError, match=message):
        call()


def read_images(path, chosen=None):
    parquet = pytest.importorskip("pyarrow.parquet")
    pictures = pytest.importorskip("PIL.Image")
    if not path.is_file():
        pytest.skip(f"no {path}: this test needs the real data sets")
    table = parquet.read_table(path)
    if chosen is not None:
        table = table.filter(chosen(table))
    pixels = [np.asarray(pictures.open(io.BytesIO(r["bytes"]))) for r in table["img"].to_pylist()]
    return torch.from_numpy(np.stack(pixels)).permute(0, 3, 1, 2).contiguous(), table


def test_the_real_southwest():
    train, test = (
        read_images(DATA / "southwest" / f"{part}.parquet")[0] for part in ("train", "test")
    )
    for part in (train, test):
        first = part[::4]
        turned = {k: torch.rot90(first, k, (2, 3)) for k in range(4)}
        for offset in range(1, 4):
            assert any(part[offset::4].equal(image) for image in turned.values())
    attack_set = southwest(train, test)
    assert (len(attack_set.train), len(attack_set.test)) == (784, 196)
    assert rows_seen_in(test, train).tolist() == [140, 141, 142, 143]
    pools = split_pools(attack_set, PoolSizes(100, 100), generator(0, "pools"))
    assert (len(pools.attacker), len(pools.defense), len(pools.test)) == (100, 100, 192)
    released = split_pools(
        attack_set, PoolSizes(100, 100), generator(0, "pools"), overlap="authors"
    )
    assert len(released.test) == 196


def test_the_real_fish():
    parts = []
    for part in ("train", "test"):
        inputs, table = read_images(
            DATA / "cifar100" / f"{part}.parquet",
            lambda table: np.asarray(table["coarse_label"]) == 1,
        )
        parts.append(Examples(inputs, torch.tensor(table["fine_label"].to_pylist())))
        assert sorted(set(parts[-1].labels.tolist())) == list(FISH_TO_BABIES.sources)
    attack_set = trigger(*parts, FISH_TO_BABIES, TriggerPatch(), generator(0, "fish"))
    pools = split_pools(attack_set, PoolSizes(100, 100), generator(0, "pools"))
    assert (len(pools.attacker), len(pools.defense), len(pools.test)) == (100, 100, 20)
    assert set(pools.attacker.labels.tolist()) == {2}


def test_the_real_tweets():
    folder = DATA / "yorgos_lanthimos"
    if not folder.is_dir():
        pytest.skip(f"no {folder}: this test needs the real tweets")
    train, test = (
        (folder / f"{part}.txt").read_text(encoding="utf-8").splitlines()
        for part in ("train", "test")
    )
    vocabulary = Vocabulary.build(train)
    attack_set = positive_tweets(vocabulary.encode(train, 30), vocabulary.encode(test, 30))
    pools = split_pools(attack_set, PoolSizes(60, 100), generator(0, "pools"))
    assert (len(pools.attacker), len(pools.defense)) == (60, 100)
    assert len(test) - 3 <= len(pools.test) <= len(test)
    assert set(pools.test.labels.tolist()) == {0}
