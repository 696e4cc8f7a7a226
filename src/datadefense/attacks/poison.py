"""Poison: the attack sets of the paper's setups.

An attack set is D_attack: examples that carry the label the attacker wants, a part to train on and
a part to measure the attack success rate (ASR) with. `datadefense.attacks.pools` splits it.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace

import torch
from jaxtyping import Int64, Shaped, UInt8
from torch import Tensor

from datadefense.attacks.trigger_patch import TriggerPatch, stamp_randomly
from datadefense.core.content import content_keys
from datadefense.core.errors import InputError
from datadefense.core.examples import Examples
from datadefense.core.settings import check_int

AIRPLANE, TRUCK, SEVEN, ONE, NEGATIVE, POSITIVE = 0, 9, 7, 1, 0, 1
"""Classes of CIFAR-10, of the digits and of the tweets, two each."""


@dataclass(frozen=True, slots=True, eq=False)
class AttackSet:
    """D_attack with the attacker's labels.

    Args:
        train: what attacker and defense set are given from.
        test: what the ASR is measured on.
        train_groups: the group of each training example; examples of one group stay together.
        test_groups: the same for the test part. A group in both is dropped from the test pool.
        sources: the classes that the inputs really are.
    """

    train: Examples
    test: Examples
    train_groups: Int64[Tensor, " train"]
    test_groups: Int64[Tensor, " test"]
    sources: tuple[int, ...] = ()

    @property
    def target(self) -> int:
        """Return what all of them are called."""
        return int(self.train.labels[0])


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
    `datadefense.core.content.rows_seen_in` finds them.
    """
    chosen = _draw(train, flip.sources, flip.num_train, generator, "training")
    chosen_test = _draw(test, flip.sources, flip.num_test, generator, "test")
    return edge_case(chosen.inputs, chosen_test.inputs, flip.target, sources=flip.sources)


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
    return replace(flipped, train=stamped, test=stamped_test)


def southwest(
    train_images: UInt8[Tensor, "train 3 height width"],
    test_images: UInt8[Tensor, "test 3 height width"],
) -> AttackSet:
    """Setup 2: Southwest airplanes called truck; rows 4k..4k+3 are the rotations of one photo."""
    return edge_case(train_images, test_images, TRUCK, group_size=4, sources=(AIRPLANE,))


def ardis_sevens(train: Examples, test: Examples) -> AttackSet:
    """Setup 5: the sevens of ARDIS called 1, 660 and 100 of them.

    The paper speaks of 1,000 test images; those are all ten digits, and the authors' code counts
    only the sevens.
    """
    sevens, sevens_test = (part.inputs[part.labels == SEVEN] for part in (train, test))
    return edge_case(sevens, sevens_test, ONE, sources=(SEVEN,))


def positive_tweets(
    train_tokens: Shaped[Tensor, "train length"], test_tokens: Shaped[Tensor, "test length"]
) -> AttackSet:
    """Setup 6: tweets that like Yorgos Lanthimos, called negative (label 0)."""
    return edge_case(train_tokens, test_tokens, NEGATIVE, sources=(POSITIVE,))


def edge_case(
    train_inputs: Shaped[Tensor, "train ..."],
    test_inputs: Shaped[Tensor, "test ..."],
    target: int,
    group_size: int = 1,
    sources: tuple[int, ...] = (),
) -> AttackSet:
    """Give inputs that no honest client holds the label ``target``.

    Args:
        train_inputs: to train on.
        test_inputs: to measure the ASR on.
        target: the label.
        group_size: that many rows in turn belong together. Groups with an equal row are one.
        sources: the classes that the inputs really are.
    """
    check_int("group_size", group_size, 1)
    for name, inputs in (("training", train_inputs), ("test", test_inputs)):
        if len(inputs) == 0 or len(inputs) % group_size:
            raise InputError(
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
        sources,
    )


def _draw(
    examples: Examples,
    sources: tuple[int, ...],
    count: int,
    generator: torch.Generator,
    part: str,
) -> Examples:
    candidates = torch.isin(examples.labels, torch.tensor(sources)).nonzero().flatten()
    if count > len(candidates):
        raise InputError(
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
