"""Pools: an attack set split between attacker, defense set and the measure of success.

The training part of an attack set is split again: what the attacker trains on and what the server
has in its defense set. With the test part, which measures the attack success rate (ASR), they are
three pools. These are disjoint, and examples of one group (the four rotations of one photo; equal
inputs) are never in two of them.

Differs from the authors' release, where the defense set *is* the attacker's set (that is
``overlap="authors"``), and where one Southwest photo of the test part is also in the training part.
"""

from dataclasses import dataclass
from typing import Literal, get_args

import torch
from jaxtyping import Int64
from torch import Tensor

from datadefense.attacks.poison import AttackSet
from datadefense.core.content import rows_seen_in
from datadefense.core.errors import DataDefenseError, InputError
from datadefense.core.examples import Examples
from datadefense.core.settings import check_choice, check_int, setting

Overlap = Literal["none", "authors"]


class OverlapError(DataDefenseError, ValueError):
    """Two pools that must be disjoint share examples."""


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
    defense: int | None = setting(None, "poisoned examples for the server; none = all that is left")
    test: int | None = setting(None, "examples to measure the ASR on; none = all there are")

    def __post_init__(self) -> None:
        check_int("attacker", self.attacker, 1)
        if self.defense is not None:
            check_int("defense", self.defense, 0)
        if self.test is not None:
            check_int("test", self.test, 1)


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
    check_choice("overlap", overlap, get_args(Overlap))
    order, ranks = _in_random_groups(attack_set.train_groups, generator)
    attacker = rest = order[: sizes.attacker]
    test = torch.arange(len(attack_set.test))
    if overlap == "none":
        rest = order[ranks > ranks[len(attacker) - 1]]
        test = test[~torch.isin(attack_set.test_groups, attack_set.train_groups)]
    defense = rest[: sizes.defense]
    wanted = sizes.defense or 0
    if len(attacker) < sizes.attacker or (overlap == "none" and len(defense) < wanted):
        raise InputError(
            "the attack set must suffice: attacker + defense <= training examples in whole "
            f"groups, got {sizes.attacker} + {wanted} of {len(order)} examples in "
            f"{int(ranks[-1]) + 1} groups"
        )
    if len(test) < (sizes.test or 1):
        raise InputError(
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


def _in_random_groups(
    groups: Int64[Tensor, " examples"], generator: torch.Generator
) -> tuple[Int64[Tensor, " examples"], Int64[Tensor, " examples"]]:
    """Return the rows with groups in random order, and the rank of each one's group, ascending."""
    distinct, member = torch.unique(groups, return_inverse=True)
    rank = torch.randperm(len(distinct), generator=generator)[member]
    ranks, order = rank.sort(stable=True)
    return order, ranks
