"""Poison: the attack sets of the paper's setups, and the three pools that each is split into.

An attack set is D_attack: examples that carry the label the attacker wants, a part to train on and
a part to measure the attack success rate (ASR) with. Its training part is split again: what the
attacker trains on and what the server has in its defense set. The three pools are disjoint, and
examples of one group (the four rotations of one photo; equal inputs) are never in two of them.

Differs from the authors' release, where the defense set *is* the attacker's set (that is
``overlap="authors"``), and where one Southwest photo of the test part is also in the training part.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Int64, Shaped, UInt8
from torch import Tensor

from datadefense.data.trigger_patch import TriggerPatch, stamp_randomly
from datadefense.examples import Examples
from datadefense.settings import one_of, setting, whole

TRUCK, SEVEN, ONE, NEGATIVE = 9, 7, 1, 0
"""Classes of CIFAR-10, of the digits (twice) and of the tweets."""

Overlap = Literal["none", "authors"]


class OverlapError(ValueError):
    """Two pools that must be disjoint share examples."""


@dataclass(frozen=True, slots=True, eq=False)
class AttackSet:
    """D_attack with the attacker's labels.

    Args:
        train: what attacker and defense set are given from.
        test: what the ASR is measured on.
        train_groups: the group of each training example; examples of one group stay together.
        test_groups: the same for the test part. A group in both is dropped from the test pool.
    """

    train: Examples
    test: Examples
    train_groups: Int64[Tensor, " train"]
    test_groups: Int64[Tensor, " test"]


@dataclass(frozen=True, slots=True, eq=False)
class Pools:
    """The attacker's poison, the defense set's poison, and the examples to measure the ASR on."""

    attacker: Examples
    defense: Examples
    test: Examples


@dataclass(frozen=True, slots=True)
class PoolSizes:
    """How many examples each pool gets."""

    attacker: int = setting(100, "poisoned examples that the attacker trains on")
    defense: int = setting(100, "poisoned examples in the server's defense set")
    test: int | None = setting(None, "examples to measure the ASR on; none = all there are")

    def __post_init__(self) -> None:
        whole("attacker", self.attacker, 1)
        whole("defense", self.defense, 0)
        if self.test is not None:
            whole("test", self.test, 1)


CIFAR_SIZES = PoolSizes(attacker=100)
ARDIS_SIZES = PoolSizes(attacker=66)
TWEET_SIZES = PoolSizes(attacker=60)


@dataclass(frozen=True, slots=True)
class Flip:
    """Which classes of a task get which label, and how many examples of them."""

    sources: tuple[int, ...]
    target: int
    num_train: int
    num_test: int


CARS_TO_BIRDS = Flip(sources=(1,), target=2, num_train=784, num_test=196)
"""Setups 1 and 3, on CIFAR-10."""

FISH_TO_BABIES = Flip(sources=(1, 32, 67, 73, 91), target=2, num_train=200, num_test=20)
"""Setup 4, on CIFAR-100's fine classes.

"Fish" is the name of a superclass only: aquarium fish, flatfish, ray, shark and trout. The paper
has 100 fish to train on, gives 100 to the attacker and 100 to the defense set, which must then be
the same ones; 200 make two disjoint pools.
"""


def label_flip(
    train: Examples, test: Examples, flip: Flip, generator: torch.Generator
) -> AttackSet:
    """Setup 1: random examples of the task itself, drawn without replacement, called another class.

    Honest clients may hold the same inputs with their true label, as with the authors;
    `rows_seen_in` finds them.
    """
    chosen = _draw(train, flip.sources, flip.num_train, generator, "training")
    chosen_test = _draw(test, flip.sources, flip.num_test, generator, "test")
    return edge_case(chosen.inputs, chosen_test.inputs, flip.target)


def trigger(
    train: Examples, test: Examples, flip: Flip, patch: TriggerPatch, generator: torch.Generator
) -> AttackSet:
    """Setups 3 and 4: as `label_flip`, and each image has the patch at a random place.

    Images that are equal without the patch are one group.
    """
    flipped = label_flip(train, test, flip, generator)
    stamped, stamped_test = (
        Examples(stamp_randomly(part.inputs, patch, generator), part.labels)
        for part in (flipped.train, flipped.test)
    )
    return AttackSet(stamped, stamped_test, flipped.train_groups, flipped.test_groups)


def southwest(
    train_images: UInt8[Tensor, "train 3 height width"],
    test_images: UInt8[Tensor, "test 3 height width"],
) -> AttackSet:
    """Setup 2: Southwest airplanes called truck; rows 4k..4k+3 are the rotations of one photo."""
    return edge_case(train_images, test_images, TRUCK, group_size=4)


def ardis_sevens(train: Examples, test: Examples) -> AttackSet:
    """Setup 5: the sevens of ARDIS called 1, 660 and 100 of them.

    The paper speaks of 1,000 test images; those are all ten digits, and the authors' code counts
    only the sevens.
    """
    sevens, sevens_test = (part.inputs[part.labels == SEVEN] for part in (train, test))
    return edge_case(sevens, sevens_test, ONE)


def positive_tweets(
    train_tokens: Shaped[Tensor, "train length"], test_tokens: Shaped[Tensor, "test length"]
) -> AttackSet:
    """Setup 6: tweets that like Yorgos Lanthimos, called negative (label 0)."""
    return edge_case(train_tokens, test_tokens, NEGATIVE)


def edge_case(
    train_inputs: Shaped[Tensor, "train ..."],
    test_inputs: Shaped[Tensor, "test ..."],
    target: int,
    group_size: int = 1,
) -> AttackSet:
    """Give inputs that no honest client holds the label ``target``.

    Args:
        train_inputs: to train on.
        test_inputs: to measure the ASR on.
        target: the label.
        group_size: that many rows in turn belong together. Groups with an equal row are one.
    """
    whole("group_size", group_size, 1)
    for name, inputs in (("training", train_inputs), ("test", test_inputs)):
        if len(inputs) == 0 or len(inputs) % group_size:
            raise ValueError(
                f"an attack set needs {name} inputs in whole groups of {group_size}, "
                f"got {len(inputs)} rows"
            )
    keys = content_keys(train_inputs) + content_keys(test_inputs)
    groups = torch.tensor(_join_equal(keys, group_size))
    return AttackSet(
        Examples(train_inputs, torch.full((len(train_inputs),), target)),
        Examples(test_inputs, torch.full((len(test_inputs),), target)),
        groups[: len(train_inputs)],
        groups[len(train_inputs) :],
    )


def split_pools(
    attack_set: AttackSet,
    sizes: PoolSizes,
    generator: torch.Generator,
    overlap: Overlap = "none",
) -> Pools:
    """Split an attack set into the attacker's pool, the defense set's and the ASR's.

    Groups come in random order. The attacker takes groups until it has enough; what is left of its
    last group goes to nobody; the defense set takes from the groups after it. Test examples whose
    group is also in the training part are dropped.

    With ``overlap="authors"`` the defense set's poison is the attacker's own (at most
    ``sizes.defense`` of it), and no test example is dropped.
    """
    one_of("overlap", overlap, get_args(Overlap))
    order, ranks = _in_random_groups(attack_set.train_groups, generator)
    attacker = rest = order[: sizes.attacker]
    test = torch.arange(len(attack_set.test))
    if overlap == "none":
        rest = order[ranks > ranks[len(attacker) - 1]]
        test = test[~torch.isin(attack_set.test_groups, attack_set.train_groups)]
    defense = rest[: sizes.defense]
    if len(attacker) < sizes.attacker or (overlap == "none" and len(defense) < sizes.defense):
        raise ValueError(
            "the attack set must suffice: attacker + defense <= training examples in whole "
            f"groups, got {sizes.attacker} + {sizes.defense} of {len(order)} examples in "
            f"{int(ranks[-1]) + 1} groups"
        )
    if len(test) < (sizes.test or 1):
        raise ValueError(
            f"the attack set must suffice: test <= test examples that are not in the training "
            f"part, got {sizes.test or 1} > {len(test)}"
        )
    if sizes.test is not None:
        chosen = torch.randperm(len(test), generator=generator)[: sizes.test]
        test = test[chosen.sort().values]
    pools = Pools(
        attack_set.train.take(attacker),
        attack_set.train.take(defense),
        attack_set.test.take(test),
    )
    if overlap == "none":
        check_disjoint(pools)
    return pools


def check_disjoint(pools: Pools) -> None:
    """Raise `OverlapError` if an input is in two pools; inputs are compared by content."""
    named = (("attacker", pools.attacker), ("defense", pools.defense), ("test", pools.test))
    for position, (name, pool) in enumerate(named):
        for other_name, other in named[position + 1 :]:
            rows = rows_seen_in(other.inputs, pool.inputs).tolist()
            if rows:
                shown = ", ".join(map(str, rows[:8])) + (", ..." if len(rows) > 8 else "")
                raise OverlapError(
                    f"the pools must be disjoint: {len(rows)} of {len(other)} {other_name} "
                    f"examples are also {name} examples ({other_name} rows {shown})"
                )


def rows_seen_in(
    inputs: Shaped[Tensor, "rows ..."], others: Shaped[Tensor, "others ..."]
) -> Int64[Tensor, " seen"]:
    """Return which rows of ``inputs`` are, byte by byte, also rows of ``others``."""
    known = set(content_keys(others))
    rows = [row for row, key in enumerate(content_keys(inputs)) if key in known]
    return torch.tensor(rows, dtype=torch.int64)


def content_keys(inputs: Shaped[Tensor, "rows ..."]) -> list[bytes]:
    """Return a 128-bit hash of the bytes of each row."""
    rows = inputs.detach().cpu().contiguous().numpy()
    return [hashlib.blake2b(row.tobytes(), digest_size=16).digest() for row in rows]


def _draw(
    examples: Examples,
    sources: tuple[int, ...],
    count: int,
    generator: torch.Generator,
    part: str,
) -> Examples:
    candidates = torch.isin(examples.labels, torch.tensor(sources)).nonzero().flatten()
    if count > len(candidates):
        raise ValueError(
            f"the {part} set must suffice: {count} <= examples of classes "
            f"{', '.join(map(str, sources))}, got {len(candidates)}"
        )
    return examples.take(candidates[torch.randperm(len(candidates), generator=generator)[:count]])


def _join_equal(keys: Sequence[bytes], group_size: int) -> list[int]:
    """Return the group of each row: ``group_size`` rows in turn, and groups with an equal row."""
    parents = list(range(-(-len(keys) // group_size)))

    def root(group: int) -> int:
        while parents[group] != group:
            group = parents[group]
        return group

    first: dict[bytes, int] = {}
    for row, key in enumerate(keys):
        group = root(row // group_size)
        known = root(first.setdefault(key, group))
        parents[max(group, known)] = min(group, known)
    return [root(row // group_size) for row in range(len(keys))]


def _in_random_groups(
    groups: Int64[Tensor, " examples"], generator: torch.Generator
) -> tuple[Int64[Tensor, " examples"], Int64[Tensor, " examples"]]:
    """Return the rows with groups in random order, and the rank of each one's group, ascending."""
    distinct, member = torch.unique(groups, return_inverse=True)
    rank = torch.randperm(len(distinct), generator=generator)[member]
    ranks, order = rank.sort(stable=True)
    return order, ranks
