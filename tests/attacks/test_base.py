"""Two backdoors are planted in turns."""

import torch
from tests.simulation.tiny import clouds, poisoned

from datadefense.attacks.base import AttackerData

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
