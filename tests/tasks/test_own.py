"""A task of one's own: who gets what, what is refused, and by which names it is found."""

import dataclasses
import sys
from itertools import combinations

import numpy as np
import pytest
import torch
from torch import nn
from torch.utils.data import Dataset, TensorDataset
from typer.testing import CliRunner

import datadefense as dd
from datadefense.cli.app import app
from datadefense.core.content import rows_seen_in
from datadefense.core.settings import SettingsError
from datadefense.runs.build import assemble
from datadefense.runs.config import parse_toml, write_toml
from datadefense.runs.configure import configure
from datadefense.runs.run import resume, start
from datadefense.simulation.pool import Pool
from datadefense.tasks.own_data import as_examples
from datadefense.testing import check_task

ROWS, CLASSES = 300, 3


def data(rows=ROWS, seed=0):
    draw = torch.Generator().manual_seed(seed)
    labels = torch.randint(CLASSES, (rows,), generator=draw)
    return torch.randn(rows, 6, generator=draw) + 3 * nn.functional.one_hot(labels, 6), labels


def network():
    return nn.Sequential(nn.Linear(6, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Linear(8, CLASSES))


def odd(row):
    row[-1] = 9.0
    return row


def own(**changes):
    fields = {"model": network, "train": data(), "poison": odd, "target": 0}
    return dd.OwnTask(**(fields | changes))


class Items(Dataset):
    """What users have: items of (input, label)."""

    def __init__(self, inputs, labels):
        self.inputs, self.labels = inputs, labels

    def __len__(self):
        return len(self.labels)

    def __getitem__(self, place):
        return self.inputs[place], int(self.labels[place])


POISONED = (data(60, seed=5)[0] + 10, torch.zeros(60, dtype=torch.int64))
TASKS = {
    "function": own(),
    "function of one class": own(sources=(2,)),
    "examples": own(poison=POISONED, target=None),
    "with a test": own(test=data(80, seed=9)),
    "dataset": own(train=Items(*data())),
    "a module": own(model=network()),
    "arrays": own(train=tuple(np.asarray(part) for part in data())),
}


@pytest.mark.parametrize("task", TASKS.values(), ids=TASKS)
def test_the_laws_hold(task):
    check_task(task)


@pytest.mark.parametrize(
    ("rows", "changes", "poison"),
    [
        (300, {}, 12),
        (100, {}, 11),
        (60, {}, 4),
        (900, {}, 33),
        (300, {"sources": (2,)}, 12),
        (60, {"sources": (2,)}, 4),
        (300, {"server_poison": 3}, 3),
        (300, {"server_clean": 8}, 12),
    ],
)
def test_the_server_has_enough_poison_to_be_sure_where_the_data_have_it(rows, changes, poison):
    task = own(train=data(rows), **changes)
    assert task.sizes().server_poison == poison
    assert len(task.load(None, 0).server_poison) == poison


changeable = own()


def poison_in_set(experiment):
    return assemble(experiment)[1].defense_set.provenance.count("poisoned")


def test_what_is_dealt_to_the_server_is_what_its_defense_set_has():
    name = f"{__name__}:changeable"
    more = configure(name, "cpu", {"task.server_poison": "20", "server_clean": "24"})
    assert (more.server.poison, more.server.clean) == (20, 24)
    assert poison_in_set(more) == 20
    less = configure(name, "cpu", {"task.server_poison": "20", "server.poison": "5"})
    assert poison_in_set(less) == 5
    with pytest.raises(SettingsError, match="server.poison must be <= 12, the poisoned .* got 20"):
        poison_in_set(configure(name, "cpu", {"server.poison": "20"}))


def test_poison_of_which_few_are_different_is_no_mistake_of_the_user():
    coarse = own(poison=lambda row: torch.full_like(row, float((row[0] * 4).round())))
    found = coarse.load(None, 0)
    assert len(found.server_poison) < coarse.sizes().server_poison
    assert found.few_poisoned


def test_it_is_the_same_task_in_whatever_form_the_data_comes():
    inputs, labels = data()
    forms = [(inputs, labels), (inputs.double().numpy(), labels.int().numpy())]
    forms += [TensorDataset(inputs, labels), Items(inputs, labels), dd.Examples(inputs, labels)]
    for form in forms:
        found = as_examples(form, "train")
        assert torch.equal(found.inputs, inputs)
        assert torch.equal(found.labels, labels)


def test_every_example_has_one_holder():
    task = own()
    found, sizes = task.load(None, 3), task.sizes()
    parts = [found.warm, found.server_clean, found.attacker.clean, found.clients, found.test]
    for one, two in combinations(parts, 2):
        assert not len(rows_seen_in(one.inputs, two.inputs))
    counts = [len(part) for part in parts]
    assert counts[:3] == sizes.clean()
    assert sum(counts) + sizes.attack_poison + sizes.server_poison == ROWS
    assert len(found.originals) == len(found.attacker.poison) == sizes.attack_poison
    assert not len(rows_seen_in(found.originals, found.clients.inputs))
    assert bool((found.attacker.poison.inputs[:, -1] == 9).all())


def test_success_is_measured_on_the_sources_of_the_test():
    test = data(80, seed=9)
    found = own(test=test, sources=(2,)).load(None, 0)
    assert len(found.backdoor_test) == int((test[1] == 2).sum())
    assert torch.equal(found.backdoor_test.inputs[:, :-1], test[0][test[1] == 2][:, :-1])
    assert bool((found.backdoor_test.labels == 0).all())
    assert len(own(test=test).load(None, 0).backdoor_test) == int((test[1] != 0).sum())


def test_what_is_in_the_test_or_in_the_poison_is_not_trained_on():
    inputs, labels = data()
    relabelled = (inputs[:60], torch.zeros(60, dtype=torch.int64))
    task = own(test=(inputs[-50:], labels[-50:]), poison=relabelled, target=None)
    found = task.load(None, 0)
    held = torch.cat([found.warm.inputs, found.clients.inputs, found.attacker.clean.inputs])
    held = torch.cat([held, found.server_clean.inputs])
    assert len(held) == ROWS - 50 - 60
    assert not len(rows_seen_in(held, torch.cat([inputs[:60], inputs[-50:]])))


def test_equal_poison_is_in_one_pool():
    doubled = (POISONED[0].repeat(2, 1), POISONED[1].repeat(2))
    check_task(own(poison=doubled, target=None, attack_poison=20, server_poison=20))
    with pytest.raises(SettingsError, match=r"all \d+ of the test are equal to some of the \d+"):
        own(poison=torch.zeros_like).load(None, 0)


def test_a_module_keeps_its_values_and_a_function_gets_fresh_ones():
    module = network()
    given = own(model=module).load(None, 0).module
    assert given is not module
    assert torch.equal(given[0].weight, module[0].weight)
    torch.manual_seed(1)
    one = own().load(None, 0).module
    torch.manual_seed(2)
    assert not torch.equal(one[0].weight, own().load(None, 0).module[0].weight)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"train": data(20)}, r"too few examples: .* = 3 \+ 3 \+ 1, .* make 18 > 15 to train on"),
        ({"train": (data()[0], data()[1] + 1)}, "labels of train must be in 0..2, .* got 1..3"),
        ({"train": (data()[0], data()[1][:-1])}, r"one label an input, got .*300, 6.* 299 labels"),
        ({"train": (data()[0], data()[1].float())}, "labels of train must be integers"),
        ({"train": (data()[0] / 0, data()[1])}, "inputs of train must be finite, got 1800"),
        ({"train": 3}, r"train must be \(inputs, labels\) or a map-style Dataset, got int"),
        ({"train": [3, 4, 5]}, r"train: item 0 must be \(input, label\), got 3"),
        ({"test": (torch.ones(5, 4), torch.zeros(5).long())}, r"shape \(4,\), not .*shape \(6,\)"),
        ({"target": 3}, "target and sources must be in 0..2, the 3 classes .* got 1?0?..3"),
        ({"target": None}, "a poison function needs a target"),
        ({"sources": (0, 1)}, r"sources must not have the target 0, got \(0, 1\)"),
        ({"poison": POISONED, "sources": (1,)}, "sources goes with a poison function"),
        ({"poison": POISONED, "target": 1}, r"labels of poison must be the target 1, got \[0\]"),
        ({"poison": data(60), "target": None}, r"labels of poison must be one target, got \[0, 1"),
        ({"poison": lambda row: row[:3]}, r"of shape \(6,\), got torch.float32 of shape \(3,\)"),
        ({"poison": lambda row: row.numpy()}, "poison must return a tensor, got ndarray"),
        ({"poison": lambda row: row / 0}, "poison must return finite values"),
        ({"model": nn.Linear(5, 3)}, r"the model must take a batch of inputs, .* \(4, 6\)"),
        ({"model": nn.Linear(6, 1)}, r">= 2 classes apart, got scores of shape \(4, 1\)"),
        ({"model": nn.Flatten()}, "the model must have an nn.Linear, .* Flatten has none"),
        (
            {"model": nn.Sequential(nn.Linear(6, 3), nn.Flatten(0))},
            r"one row of class scores each, got \(12,\)",
        ),
        ({"model": lambda: 3}, "model must make an nn.Module, got a int"),
        ({"server_clean": 250}, "too few examples: .* 56 [+] 250"),
        ({"attack_poison": 0}, "attack_poison must be >= 1, got 0"),
    ],
)
def test_what_does_not_fit_is_refused_in_a_sentence(changes, message):
    with pytest.raises(SettingsError, match=message):
        own(**changes)


def test_a_class_that_workers_cannot_import_is_refused():
    class Local(nn.Linear):
        pass

    with pytest.raises(SettingsError, match="Local of the model must be at the top level"):
        own(model=lambda: Local(6, 3))


def test_too_little_poison_is_refused():
    task = own(poison=POISONED, target=None, attack_poison=30, server_poison=30)
    with pytest.raises(SettingsError, match=r"30 \+ 30 must be < 60 different ones"):
        task.load(None, 0)
    with pytest.raises(SettingsError, match=r"of classes 2: .* = 80 \+ 11 must be <= \d+ to train"):
        own(sources=(2,), attack_poison=80).load(None, 0)


MODULE = """
import torch
from torch import nn
import datadefense as dd

BUILT = []

def odd(row):
    row[-1] = 9.0
    return row

def make():
    BUILT.append(1)
    labels = torch.arange(300) % 3
    draw = torch.Generator().manual_seed(0)
    inputs = torch.randn(300, 6, generator=draw) + 3 * nn.functional.one_hot(labels, 6)
    model = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 3))
    return dd.OwnTask(model=model, train=(inputs, labels), poison=odd, target=0, {more})

instance = make()
three = 3

def network():
    return nn.Linear(6, 3)

def fails():
    raise KeyError("no such file")
"""
QUICK = {
    "attack": "data-poisoning",
    "malicious": "0.2",
    "rounds": "4",
    "warm.epochs": "2",
    "checkpoint_every": "1",
    "defense": "datadefense",
}


@pytest.fixture
def my_module(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(tmp_path)

    def write(name, more=""):
        (tmp_path / f"{name}.py").write_text(MODULE.replace("{more}", more))
        sys.modules.pop(name, None)

    yield write
    for name in ("my_own", "my_other"):
        sys.modules.pop(name, None)


@pytest.mark.parametrize("name", ["make", "instance"])
def test_a_run_by_name_stops_and_goes_on_to_the_same_bits(my_module, tmp_path, name):
    my_module("my_own")
    wanted = configure(f"my_own:{name}", "cpu", QUICK)
    text = write_toml(wanted)
    assert f'name = "my_own:{name}"' in text
    assert parse_toml(text) == wanted
    folders = tmp_path / "straight", tmp_path / "stopped"
    with start(wanted, folders[0]) as run, Pool(run.federation, 0) as pool:
        straight = list(run.rounds(pool))[-1], run.progress.params
    with start(wanted, folders[1]) as run, Pool(run.federation, 0) as pool:
        next(rounds := run.rounds(pool))
        rounds.close()
    sys.modules.pop("my_own")  # as another process would find it
    with resume(folders[1]) as run, Pool(run.federation, 0) as pool:
        assert run.progress.round == 1
        resumed = list(run.rounds(pool))[-1], run.progress.params
    assert torch.equal(straight[1], resumed[1])
    assert straight[0].asr_percent == resumed[0].asr_percent


def test_what_it_holds_is_not_listed_as_a_setting(my_module):
    my_module("my_own")
    said = CliRunner().invoke(app, ["list", "settings", "--task", "my_own:make"])
    assert said.exit_code == 0
    assert "task.attack_poison" in said.output
    assert "task.train" not in said.output
    assert "task._classes" not in said.output


def test_the_function_is_called_once(my_module):
    my_module("my_own")
    configure("my_own:make", "cpu", QUICK)
    built = len(sys.modules["my_own"].BUILT)
    configure("my_own:make", "cpu", QUICK)
    assert len(sys.modules["my_own"].BUILT) == built == 2


def test_settings_can_be_changed_by_name_and_have_the_instances_values(my_module):
    my_module("my_own", "attack_poison=7")
    assert configure("my_own:make", "cpu", QUICK).task.attack_poison == 7
    changed = configure("my_own:make", "cpu", QUICK | {"attack_poison": "5", "task.target": "1"})
    federation, server = assemble(changed)
    assert len(changed.task.load(None, 0).attacker.poison) == 5
    assert bool((federation.backdoor_test.labels == 1).all())
    assert server.defense_set is not None


def test_another_content_or_another_setting_in_the_file_is_another_run(my_module, tmp_path):
    my_module("my_own")
    first = configure("my_own:make", "cpu", QUICK)
    with start(first, tmp_path / "run"):
        pass
    keys = {first.key()}
    for more in ("attack_poison=7", "sources=(1,)"):
        my_module("my_own", more)
        keys.add(configure("my_own:make", "cpu", QUICK).key())
    assert len(keys) == 3
    with pytest.raises(SettingsError, match="model, data or poison have changed since this con"):
        resume(tmp_path / "run")


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("three", "'my_own:three' must be a class, an instance or a function of tasks, got 3"),
        ("fails", r"my_own:fails\(\) makes no task: KeyError: 'no such file'"),
        ("absent", "cannot import the task 'my_own:absent'"),
        ("network", r"my_own:network\(\) must return a task, got a Linear"),
        ("odd", r"my_own:odd\(\) makes no task: TypeError"),
    ],
)
def test_what_is_no_task_is_refused_by_name(my_module, name, message):
    my_module("my_own")
    with pytest.raises(SettingsError, match=message):
        configure(f"my_own:{name}", "cpu", QUICK)


def test_presets_suit_the_data_and_can_be_replaced(my_module):
    my_module("my_own", 'preset={"federation": {"learning_rate": 0.5}, "attack": {"epochs": 3}}')
    found = configure("my_own:make", "cpu", QUICK)
    assert found.federation.learning_rate == 0.5
    assert found.federation.clients == 10
    assert found.server.clean == len(found.task.load(None, 0).server_clean)
    assert found.warm.accuracy_percent is None
    assert dataclasses.replace(found, seed=3).task == found.task
    my_module("my_other", 'preset={"federation": {"learningrate": 0.5}}')
    with pytest.raises(
        SettingsError,
        match="federation.learningrate, which is no setting, did you mean 'learning_rate'",
    ):
        configure("my_other:make", "cpu", QUICK)
