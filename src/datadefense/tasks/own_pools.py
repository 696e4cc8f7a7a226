"""Pools of a user's poison: for attackers, for the server, and to measure success; all disjoint."""

import torch
from torch import Tensor

from datadefense.attacks.pools import Pools
from datadefense.core.content import content_keys, rows_seen_in
from datadefense.core.examples import Examples
from datadefense.core.rng import derive_seed, generator
from datadefense.core.settings import SettingsError
from datadefense.tasks.base import Aim
from datadefense.tasks.own_data import Poison, poisoned


def pools_of_examples(poison: Examples, wanted: tuple[int, int], seed: int) -> Pools:
    """Split poisoned examples at random: attackers, server, and the rest to measure success.

    Of equal inputs the first counts. ``wanted`` are the sizes of the first two pools.
    """
    distinct = poison.take(first_of_equal(poison.inputs))
    left = len(distinct) - sum(wanted)
    if left < 1:
        raise SettingsError(
            f"too few poisoned examples: attack_poison + server_poison = {wanted[0]} + "
            f"{wanted[1]} must be < {len(distinct)} different ones"
        )
    order = torch.randperm(len(distinct), generator=generator(seed, "poison"))
    return Pools(*(distinct.take(part) for part in torch.split(order, [*wanted, left])))


def pools_by_function(
    poison: Poison,
    aim: Aim,
    clean: Examples,
    test: Examples,
    *,
    wanted: tuple[int, int],
    seed: int,
) -> tuple[Examples, Pools, Tensor]:
    """Poison examples of the source classes; each is taken away from the clean ones.

    Success is measured on all test examples of these classes, never on those of the target. torch's
    randomness is seeded for ``poison``. Inputs that are equal once poisoned are in one pool only.

    Returns:
        the clean examples that are left, the pools, and what the attackers' poison was made of.
    """
    sources = torch.tensor(aim.sources)
    fit = torch.isin(clean.labels, sources).nonzero().flatten()
    tested = test.inputs[torch.isin(test.labels, sources)]
    if sum(wanted) > len(fit) or not len(tested):
        raise SettingsError(
            f"too few examples of classes {', '.join(map(str, aim.sources))}: attack_poison + "
            f"server_poison = {wanted[0]} + {wanted[1]} must be <= {len(fit)} to train on, and "
            f"1 <= {len(tested)} in the test"
        )
    order = torch.randperm(len(fit), generator=generator(seed, "poison"))
    used = fit[order[: sum(wanted)]]
    held, found = torch.split(clean.inputs[used], list(wanted))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(seed, "poison"))
        made = [poisoned(inputs, poison) for inputs in (held, found, tested)]
    attacker, server, measured = (
        Examples(inputs, torch.full((len(inputs),), aim.target)) for inputs in made
    )
    server = without(server, attacker.inputs)
    measured = without(measured, torch.cat([attacker.inputs, server.inputs]))
    if not len(measured):
        raise SettingsError(
            f"poison must make different inputs: all {len(tested)} of the test are equal to some "
            f"of the {sum(wanted)} to train on"
        )
    left = torch.ones(len(clean), dtype=torch.bool)
    left[used] = False
    return clean.take(left.nonzero().flatten()), Pools(attacker, server, measured), held


def without(examples: Examples, others: Tensor) -> Examples:
    """Return the examples whose inputs are not among others."""
    left = torch.ones(len(examples), dtype=torch.bool)
    left[rows_seen_in(examples.inputs, others)] = False
    return examples.take(left.nonzero().flatten())


def first_of_equal(inputs: Tensor) -> Tensor:
    """Return the rows that are not equal to one before them.

    >>> first_of_equal(torch.tensor([3, 1, 3, 2])[:, None])
    tensor([0, 1, 3])
    """
    first: dict[bytes, int] = {}
    for row, key in enumerate(content_keys(inputs)):
        first.setdefault(key, row)
    return torch.tensor(list(first.values()))
