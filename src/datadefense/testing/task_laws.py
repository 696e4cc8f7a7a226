"""Laws that every task obeys: ``check_task(MyTask())``; a broken one says which, and why."""

from collections.abc import Callable
from itertools import combinations
from pathlib import Path
from typing import NamedTuple

import torch
from torch import Tensor

from datadefense.core.content import rows_seen_in
from datadefense.core.examples import Examples
from datadefense.core.features import penultimate
from datadefense.core.layout import Layout
from datadefense.core.rng import derive_seed
from datadefense.tasks.base import Task, TaskData
from datadefense.testing.broken import BrokenLawError, naming, require, require_plugin

MOST_SHARED = 0.1
"""Share of equal inputs in two clean parts: some data sets hold an input twice."""
FEW = 8
"""Examples of each part that the model is shown."""
MOST_COMPARED = 200
SAME_FEATURES = 0.75
"""Share of the features, background aside, by which a poisoned input's original is known."""


class Loaded(NamedTuple):
    """A task's data at a seed, again at this seed, and at the next one."""

    data: TaskData
    again: TaskData
    other: TaskData

    @property
    def classes(self) -> int:
        """Return how many classes the model tells apart."""
        return scores(self.data, self.data.test).shape[1]


TaskLaw = Callable[[Loaded], None]


def no_part_is_empty(loaded: Loaded) -> None:
    """Everybody holds something, and all inputs are of one shape and type."""
    parts = parts_of(loaded.data)
    for name, part in parts.items():
        require(len(part) >= 1, f"{name} has no example")
        have, wanted = (
            (tuple(inputs.shape[1:]), inputs.dtype)
            for inputs in (part.inputs, loaded.data.clients.inputs)
        )
        require(have == wanted, f"inputs of {name} are {have}, those of clients {wanted}")


def module_takes_the_inputs(loaded: Loaded) -> None:
    """The model gives a finite score for each class, and has parameters and a dense layer."""
    data = loaded.data
    try:
        Layout.of_module(data.module)
    except ValueError as error:
        raise BrokenLawError(f"the model cannot be a vector: {error}") from error
    for name, part in parts_of(data).items():
        try:
            found = scores(data, part)
        except Exception as error:
            raise BrokenLawError(f"the model cannot take inputs of {name}: {error}") from error
        good = found.ndim == 2 and len(found) == min(FEW, len(part)) and found.shape[1] >= 2
        require(good, f"the scores for {name} have shape {tuple(found.shape)}")
        require(bool(found.isfinite().all()), f"the scores for {name} are not finite")
    try:
        penultimate(data.module, data.test.inputs[:FEW])
    except ValueError as error:
        raise BrokenLawError(f"a defense set cannot be encoded: {error}") from error


def labels_are_classes(loaded: Loaded) -> None:
    """Every label is the number of a class."""
    for name, part in parts_of(loaded.data).items():
        require(part.labels.dtype == torch.int64, f"labels of {name} are {part.labels.dtype}")
        low, high = int(part.labels.min()), int(part.labels.max())
        inside = low >= 0 and high < loaded.classes
        require(inside, f"labels of {name} are {low}..{high}, not in 0..{loaded.classes - 1}")


def poison_carries_the_target(loaded: Loaded) -> None:
    """All poison, for whomever, has the attacker's label, and this is no class it comes from."""
    data = loaded.data
    target = int(data.attacker.poison.labels[0]) if data.aim is None else data.aim.target
    for name, part in poison_of(data).items():
        wrong = int((part.labels != target).sum())
        require(wrong == 0, f"{wrong} of {len(part)} in {name} are not called {target}")
    if data.aim is not None:
        require(target not in data.aim.sources, f"the target {target} is one of the sources")


def success_is_no_right_answer(loaded: Loaded) -> None:
    """No poisoned test example is of the target class: calling it so would be right.

    The original of a poisoned example is looked for among the test examples of the target: one
    that has the same values in three of four features, those aside that most examples share
    (background, padding). Nothing is found where poison changes all of an input.
    """
    data = loaded.data
    target = int(data.backdoor_test.labels[0])
    right = data.test.inputs[data.test.labels == target].flatten(1)
    measured = data.backdoor_test.inputs[:MOST_COMPARED].flatten(1)
    if not len(right):
        return
    telling = right != right.mode(0).values
    counts = telling.sum(1).clamp(min=1)
    found = sum(
        bool((((row == right) & telling).sum(1) >= SAME_FEATURES * counts)[telling.any(1)].any())
        for row in measured
    )
    require(
        found == 0,
        f"{found} of {len(measured)} in backdoor_test are of the target class {target}",
    )


def parts_are_disjoint(loaded: Loaded) -> None:
    """No poison is in two pools, and hardly a clean example in two parts.

    The first model may be trained on everybody's examples, but not on the test's.
    """
    data = loaded.data
    for (name, part), (other_name, other) in combinations(poison_of(data).items(), 2):
        shared = len(rows_seen_in(other.inputs, part.inputs))
        require(shared == 0, f"{shared} of {len(other)} in {other_name} are also in {name}")
    clean = {
        "clients": data.clients,
        "attacker.clean": data.attacker.clean,
        "server_clean": data.server_clean,
        "test": data.test,
    }
    pairs = [*combinations(clean.items(), 2), (("warm", data.warm), ("test", data.test))]
    for (name, part), (other_name, other) in pairs:
        shared = len(rows_seen_in(other.inputs, part.inputs))
        few = shared <= MOST_SHARED * len(other)
        require(few, f"{shared} of {len(other)} in {other_name} are also in {name}")


def same_seed_same_bits(loaded: Loaded) -> None:
    """Loaded twice, it is the same model and the same examples in the same hands."""
    data, again = loaded.data, loaded.again
    model, other_model = data.module.state_dict(), again.module.state_dict()
    alike = model.keys() == other_model.keys() and all(
        _same(model[key], other_model[key]) for key in model
    )
    require(alike, "the same seed gave two models")
    for (name, part), other in zip(parts_of(data).items(), parts_of(again).values(), strict=True):
        alike = _same(part.inputs, other.inputs) and _same(part.labels, other.labels)
        require(alike, f"the same seed gave other examples to {name}")


def other_seed_other_split(loaded: Loaded) -> None:
    """Another seed deals examples and poison to other hands."""
    for name in ("clients", "server_clean"):
        here, there = (getattr(data, name).inputs for data in (loaded.data, loaded.other))
        require(not _same(here, there), f"another seed gave the same examples to {name}")
    here, there = (data.attacker.poison.inputs for data in (loaded.data, loaded.other))
    require(not _same(here, there), "another seed gave attackers the same poison")


TASK_LAWS: tuple[TaskLaw, ...] = (
    no_part_is_empty,
    module_takes_the_inputs,
    labels_are_classes,
    poison_carries_the_target,
    success_is_no_right_answer,
    parts_are_disjoint,
    same_seed_same_bits,
    other_seed_other_split,
)


def check_task(task: Task, folder: Path | None = None, seed: int = 0) -> None:
    """Hold a task to every law; it is loaded three times, from ``folder`` if it wants one.

    Raises BrokenLawError (an AssertionError) with the law's name.
    """
    require_plugin(task, Task, check_task)
    loaded = Loaded(*(load(task, folder, number) for number in (seed, seed, seed + 1)))
    for law in TASK_LAWS:
        with naming(task, law):
            law(loaded)


def load(task: Task, folder: Path | None, seed: int) -> TaskData:
    """Load a task as a run does: torch's randomness is seeded, apart from the seed of the data."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(0, "model"))
        return task.load(folder, seed)


def parts_of(data: TaskData) -> dict[str, Examples]:
    """Return all examples by holder."""
    return {
        "warm": data.warm,
        "clients": data.clients,
        "attacker.clean": data.attacker.clean,
        "server_clean": data.server_clean,
        "test": data.test,
        **poison_of(data),
    }


def poison_of(data: TaskData) -> dict[str, Examples]:
    """Return all poison by holder."""
    return {
        "attacker.poison": data.attacker.poison,
        "server_poison": data.server_poison,
        "backdoor_test": data.backdoor_test,
    }


def scores(data: TaskData, part: Examples) -> Tensor:
    """Return what the model gives for a few examples of a part."""
    data.module.eval()
    with torch.no_grad():
        found: Tensor = data.module(part.inputs[:FEW])
    return found


def _same(first: Tensor, second: Tensor) -> bool:
    return (
        first.shape == second.shape and first.dtype == second.dtype and torch.equal(first, second)
    )
