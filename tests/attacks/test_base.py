"""What an attacker holds, two backdoors in turns, and what an attack does unless it says else."""

from dataclasses import dataclass

import torch
from tests.attacks.situations import context
from tests.simulation.tiny import clouds, poisoned

from datadefense.attacks.base import Attack, AttackerData, Sees
from datadefense.core.local_training import Sgd

LOOT = AttackerData(
    clouds(6, 1), poisoned(5, 2), guess=(clouds(3, 3), poisoned(3, 4)), other=clouds(4, 5)
)


def test_even_places_plant_the_first_and_odd_ones_the_other():
    for place in range(6):
        planted = LOOT.other if place % 2 else LOOT.poison
        assert torch.equal(LOOT.in_turn(place).poison.inputs, planted.inputs)
        mixed = torch.cat([LOOT.clean.inputs, planted.inputs])
        assert torch.equal(LOOT.in_turn(place).mixed().inputs, mixed)


def test_a_turn_leaves_the_rest_of_the_loot():
    taken = LOOT.in_turn(1)
    assert taken.clean is LOOT.clean
    assert taken.guess is LOOT.guess


def test_who_has_one_backdoor_has_no_turns():
    single = AttackerData(LOOT.clean, LOOT.poison)
    assert single.in_turn(0) is single.in_turn(1) is single


def test_a_guess_takes_the_last_third_of_the_poison_and_shares_the_clean():
    split = AttackerData(LOOT.clean, LOOT.poison).with_guess()
    clean, poison = split.guess
    assert clean is split.clean is LOOT.clean
    assert (len(split.poison), len(poison)) == (4, 1)
    assert torch.equal(poison.inputs, LOOT.poison.inputs[4:])
    assert torch.equal(split.poison.inputs, LOOT.poison.inputs[:4])


def test_a_training_of_ones_own_is_the_honest_one_but_for_passes_and_step_size():
    where = context(training=Sgd(1, 8, 0.05, 0.5, 0.01), rate_factor=0.5)
    assert where.own_training(7, 0.1) == Sgd(7, 8, 0.05, 0.5, 0.01)


@dataclass(frozen=True)
class Still(Attack):
    """Overrides what must be overridden, and nothing else."""

    def update(self, trainer, data, context):
        return torch.zeros_like(context.start)


def test_by_itself_an_attack_sees_remembers_and_agrees_on_nothing():
    attack, start = Still(), context().start
    assert attack.sees() is Sees.NOTHING
    assert attack.init(start) is None
    assert attack.remember("kept", start[None], context()) == "kept"
    assert attack.honest_trainings(9) == 0
    assert attack.agree(None) is None
    assert attack.holdings(LOOT, 20) is LOOT
    assert attack.num_examples(LOOT) == attack.claim(LOOT) == 11
    assert attack.revision == 1


def test_randomness_is_named_by_round_attacker_and_purpose():
    draws = [
        context(index=index, attacker=attacker).generator(name).initial_seed()
        for index in (1, 2)
        for attacker in ((0, 2), (1, 2))
        for name in ("order", "imitation")
    ]
    assert len(set(draws)) == len(draws)
    assert context(index=1).generator("order").initial_seed() == draws[0]
