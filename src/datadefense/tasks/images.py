"""Image tasks: what CIFAR-10, CIFAR-100 and the digits have in common."""

from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from datadefense.attacks.base import AttackerData
from datadefense.attacks.poison import AttackSet, Flip
from datadefense.attacks.poison_variants import LOOKS, other_poison, without_trigger
from datadefense.attacks.pools import Overlap, PoolSizes, split_pools
from datadefense.attacks.trigger_patch import TriggerPatch, stamp_randomly
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import check_int
from datadefense.data.catalog import load_images
from datadefense.tasks.augment import crop_and_flip
from datadefense.tasks.base import Aim, SecondBackdoor, TaskData, split_examples

SERVER = 400
"""Clean examples that are set aside for the server."""


@dataclass(frozen=True, slots=True)
class Held:
    """How many examples attackers hold, and what they share with the server."""

    clean: int
    poison: int
    overlap: Overlap
    second_backdoor: SecondBackdoor

    def __post_init__(self) -> None:
        check_int("attack_clean", self.clean, 0)
        check_int("attack_poison", self.poison, 1)


@dataclass(frozen=True, slots=True, eq=False)
class Pictures:
    """The clean images of a task."""

    train: Examples
    test: Examples

    @classmethod
    def of(cls, dataset: str, folder: Path | None) -> "Pictures":
        """Read both parts of a data set."""
        return cls(load_images(dataset, folder, "train"), load_images(dataset, folder, "test"))


def both_parts(
    dataset: str, folder: Path | None, duplicates: Literal["drop", "keep"] = "drop"
) -> tuple[Examples, Examples]:
    """Read the training part and the test part of a data set of poison."""
    return (
        load_images(dataset, folder, "train", duplicates=duplicates),
        load_images(dataset, folder, "test", duplicates=duplicates),
    )


@dataclass(frozen=True, slots=True, eq=False)
class Stamped:
    """The images of a trigger backdoor before they were stamped, and poison with a part of it.

    Args:
        plain: the attack set, row by row, without the trigger.
        parts: poison with a quarter of the trigger each, for a distributed backdoor.
        part_images: the images of the parts, without the trigger.
    """

    plain: AttackSet
    parts: tuple[Examples, ...]
    part_images: Tensor


def image_data(
    module: nn.Module,
    pictures: Pictures,
    attack_set: AttackSet,
    held: Held,
    *,
    draw: torch.Generator,
    seed: int,
    augment: bool,
    stamped: Stamped | None = None,
    few_poisoned: bool = False,
) -> TaskData:
    """Deal out the images and the poison; ``draw`` is the one that made the attack set."""
    pools = split_pools(attack_set, PoolSizes(held.poison), draw, held.overlap)
    server, attacker, clients = split_examples(pictures.train, [SERVER, held.clean], seed)
    plain = None if stamped is None else stamped.plain
    originals = None
    if stamped is not None:
        used = without_trigger(pools.attacker, attack_set, stamped.plain)
        originals = torch.cat([used, stamped.part_images])
    looks = LOOKS[:1] if plain is None else LOOKS
    return TaskData(
        module=module,
        warm=pictures.train,
        clients=clients,
        attacker=AttackerData(attacker, pools.attacker, () if stamped is None else stamped.parts),
        server_clean=server,
        server_poison=pools.defense,
        test=pictures.test,
        backdoor_test=pools.test,
        augment=crop_and_flip if augment else None,
        aim=Aim(attack_set.sources, attack_set.target),
        originals=originals,
        variants={
            look: partial(other_poison, look, stamped=attack_set, plain=plain) for look in looks
        },
        few_poisoned=few_poisoned,
        second_backdoor=held.second_backdoor,
    )


def stamped_images(
    pictures: Pictures,
    flip: Flip,
    plain: AttackSet,
    patch: TriggerPatch,
    *,
    count: int,
    seed: int,
) -> Stamped:
    """Return what a trigger was stamped on, and as much poison with each quarter of it."""
    cars = torch.isin(pictures.train.labels, torch.tensor(flip.sources)).nonzero().flatten()
    draw = generator(seed, "parts")
    picked = cars[torch.randperm(len(cars), generator=draw)[:count]]
    images = pictures.train.inputs[picked]
    labels = torch.full((len(picked),), flip.target)
    parts = [stamp_randomly(images, quarter, draw) for quarter in patch.quarters()]
    return Stamped(plain, tuple(Examples(part, labels) for part in parts), images)
