"""A task of one's own: a model, its data and a poison become a federation under attack."""

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from datadefense.attacks.base import AttackerData
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError, check_float, check_int, setting
from datadefense.tasks.base import Aim, Preset, Scale, Task, TaskData, split_examples
from datadefense.tasks.own_data import (
    Given,
    Poison,
    as_examples,
    check_fits,
    check_labels,
    count_classes,
    digest_of,
    poisoned,
)
from datadefense.tasks.own_pools import pools_by_function, pools_of_examples, without

MOST_SERVER = 400
"""Clean examples of the server, at most, where nothing is said."""
ENOUGH_POISON = 12
"""Poisoned examples of the server below which hardly anything can be sure of them."""
LEAST_KNOWN = 50
"""Known clean examples below which half of the server's are known, and not a quarter."""
PER_CLIENT = 20
"""Examples that a client has where there are few."""
FEWEST_CLIENTS, MOST_CLIENTS = 10, 50
WARM_STEPS, MOST_PASSES = 400, 60
"""Steps of the first model's training, about, and most passes over its examples."""
PROBED = 64
"""Inputs by whose poisoned copies a function is known again."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many examples each holder gets; honest clients have what is left."""

    first_model: int
    server_clean: int
    server_poison: int
    attack_clean: int
    attack_poison: int
    clients: int

    def clean(self) -> list[int]:
        """Return the clean parts, in the order in which they are dealt."""
        return [self.first_model, self.server_clean, self.attack_clean]


@dataclass(frozen=True, slots=True, eq=False)
class OwnTask(Task):
    """A model, data and poison of your own.

    The seed divides the data, and no example is in two parts: examples for the first model, for the
    server, for attackers and for honest clients; poison for attackers, for the server and for the
    measure of success. Examples of ``train`` that are also in ``test`` or in the poison are left
    out.

    Args:
        model: takes a batch of inputs and gives a score for each class. A function without
            arguments, or a class, makes a fresh one by ``warm.seed``; a module is taken with the
            values that it has.
        train: examples, a pair (inputs, labels) of tensors or arrays, or a map-style Dataset.
        poison: a function that poisons one input; or poisoned examples with the attacker's label.
        target: the attacker's label; None: that of the poisoned examples.
        test: as ``train``; None: a part of it.
        sources: with a function, the classes whose examples are poisoned; None: all but the target.
        preset: values of other parts of a run that suit the task, in place of those that suit the
            amount of data: ``{"federation": {"learning_rate": 0.05}}``.
    """

    model: nn.Module | Callable[[], nn.Module]
    train: Given
    poison: Poison | Given
    test: Given | None = None
    sources: tuple[int, ...] | None = None
    preset: Preset | None = None
    target: int | None = setting(None, "label that the attacker wants for poisoned inputs")
    test_share: float = setting(0.25, "share of the data that is the test, if none is given")
    first_model: int | None = setting(None, "examples of the first model; none: 25 %")
    server_clean: int | None = setting(
        None, "clean examples of the server; none: 20 %, at most 400"
    )
    server_poison: int | None = setting(
        None, "poisoned ones of the server; none: a quarter of it, at least 12 if there are enough"
    )
    attack_clean: int | None = setting(None, "clean ones of an attacker; none: twice its poison")
    attack_poison: int | None = setting(None, "poisoned ones of an attacker; none: by the data")
    content: str | None = setting(None, "digest of model, data and poison, filled in by itself")
    _classes: int = field(init=False, repr=False, compare=False)

    name: ClassVar[str] = "own"

    def __post_init__(self) -> None:
        given = {"train": self.train, "test": self.test}
        for what, data in given.items():
            if data is not None:
                object.__setattr__(self, what, as_examples(data, what))
        if not callable(self.poison):
            object.__setattr__(self, "poison", as_examples(self.poison, "poison"))
        self._check_settings()
        module = self._module()
        object.__setattr__(self, "_classes", count_classes(module, self._train))
        self._check_data()
        self._check_content(module)

    @property
    def _train(self) -> Examples:
        return self.train  # type: ignore[return-value]  # made so by __post_init__

    @property
    def _poison(self) -> Examples | None:
        return self.poison if isinstance(self.poison, Examples) else None

    def _module(self) -> nn.Module:
        """Return a model: a copy of the one given, or a fresh one by torch's randomness."""
        if isinstance(self.model, nn.Module):
            return copy.deepcopy(self.model)
        made = self.model()
        if not isinstance(made, nn.Module):
            raise SettingsError(f"model must make an nn.Module, got a {type(made).__name__}")
        return made

    def _check_settings(self) -> None:
        check_float("test_share", self.test_share, above=0, below=1)
        for name, least in (
            ("first_model", 1),
            ("server_clean", 1),
            ("server_poison", 0),
            ("attack_clean", 1),
            ("attack_poison", 1),
        ):
            if (value := getattr(self, name)) is not None:
                check_int(name, value, least)
        if self.sources is not None and self._poison is not None:
            raise SettingsError("sources goes with a poison function, not with poisoned examples")

    def _check_data(self) -> None:
        train, poison = self._train, self._poison
        check_labels(train.labels, self._classes, "labels of train")
        if isinstance(self.test, Examples):
            check_fits(self.test, train, "test")
            check_labels(self.test.labels, self._classes, "labels of test")
        if poison is not None:
            check_fits(poison, train, "poison")
            labels = sorted(set(poison.labels.tolist()))
            if len(labels) > 1 or self.target not in (None, labels[0]):
                named = "one target" if self.target is None else f"the target {self.target}"
                raise SettingsError(f"labels of poison must be {named}, got {labels[:8]}")
        elif self.target is None:
            raise SettingsError("a poison function needs a target: the label of what it makes")
        aim = self.aim()
        check_labels(torch.tensor([aim.target, *aim.sources]), self._classes, "target and sources")
        if aim.target in aim.sources:
            raise SettingsError(f"sources must not have the target {aim.target}, got {aim.sources}")
        sizes = self.sizes()
        least = sum(sizes.clean()) + sizes.clients
        least += 0 if poison is not None else sizes.attack_poison + sizes.server_poison
        if least > self._training_rows():
            raise SettingsError(
                f"too few examples: first_model + server_clean + attack_clean = "
                f"{' + '.join(map(str, sizes.clean()))}, poison and one for each of "
                f"{sizes.clients} clients make {least} > {self._training_rows()} to train on"
            )

    def _check_content(self, module: nn.Module) -> None:
        """Fill in the digest, or raise if the task is not what it was when that was stored."""
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            if not isinstance(self.model, nn.Module):
                module = self._module()
            poison, test = self._poison, self.test
            probe = poison.inputs if poison else poisoned(self._train.inputs[:PROBED], self._change)
        parts = [self._train.inputs, self._train.labels, probe, torch.tensor(self.sources or ())]
        if isinstance(test, Examples):
            parts += [test.inputs, test.labels]
        found = digest_of(module, *parts)
        if self.content not in (None, found):
            raise SettingsError(
                f"model, data or poison have changed since this configuration was written: their "
                f"digest is {found}, not {self.content}"
            )
        object.__setattr__(self, "content", found)

    def _change(self, plain: Tensor) -> Tensor:
        return self.poison(plain)  # type: ignore[operator]  # only with a function

    def aim(self) -> Aim:
        """Return what becomes what; with poisoned examples, nothing says what they really are."""
        if (poison := self._poison) is not None:
            return Aim((), int(poison.labels[0]))
        target = -1 if self.target is None else self.target
        others = tuple(label for label in range(self._classes) if label != target)
        return Aim(others if self.sources is None else tuple(self.sources), target)

    def _training_rows(self) -> int:
        """Return how many examples there are to train on, before equal ones are left out."""
        rows = len(self._train)
        return rows - (0 if self.test is not None else max(1, round(self.test_share * rows)))

    def sizes(self) -> Sizes:
        """Return who gets how much."""
        rows, poison = self._training_rows(), self._poison
        clients = min(max(rows // (2 * PER_CLIENT), FEWEST_CLIENTS), MOST_CLIENTS)
        server = _or(self.server_clean, min(MOST_SERVER, rows // 5))
        a_third = None if poison is None else max(1, len(poison) // 3)
        sizes = Sizes(
            first_model=_or(self.first_model, max(1, rows // 4)),
            server_clean=server,
            server_poison=0,
            attack_clean=_or(self.attack_clean, max(1, rows // clients)),
            attack_poison=_or(self.attack_poison, a_third or max(1, rows // (2 * clients))),
            clients=clients,
        )
        if a_third is None:
            found = max(server // 4, min(ENOUGH_POISON, self._spare_sources(sizes) // 2))
        else:
            found = min(a_third, MOST_SERVER // 4)
        return replace(sizes, server_poison=_or(self.server_poison, found))

    def _spare_sources(self, sizes: Sizes) -> int:
        """Return how many examples that a function could poison the others leave, about."""
        rows = self._training_rows()
        sources = torch.isin(self._train.labels, torch.tensor(self.aim().sources))
        fit = int(sources.sum()) * rows // len(self._train)
        left = rows - sum(sizes.clean()) - sizes.clients
        return max(0, min(fit, left) - sizes.attack_poison)

    def own_presets(self) -> Mapping[Scale, Preset]:
        """Return what suits the amount of data: clients, batches, and the server's set."""
        sizes = self.sizes()
        poison = 0 if self._poison is not None else sizes.attack_poison + sizes.server_poison
        left = self._training_rows() - sum(sizes.clean()) - poison
        batch = _batch(sizes.first_model)
        half = max(1, sizes.server_clean // 2)
        known = max(sizes.server_clean // 4, min(half, LEAST_KNOWN))
        passes = WARM_STEPS * batch // sizes.first_model
        suited: dict[str, Mapping[str, Any]] = {
            "warm": {"epochs": min(max(passes, 2), MOST_PASSES), "batch_size": batch},
            "federation": {
                "clients": sizes.clients,
                "clients_per_round": FEWEST_CLIENTS,
                "batch_size": _batch(left // sizes.clients),
            },
            "server": {
                "clean": sizes.server_clean,
                "known_clean": known,
                "poison": sizes.server_poison,
            },
        }
        for part, values in (self.preset or {}).items():
            suited[part] = {**suited.get(part, {}), **values}
        return {"cpu": suited}

    def load(self, folder: Path | None, seed: int) -> TaskData:
        """Deal out examples and poison; ``folder`` is not used."""
        module = self._module()
        clean, test = self._clean_and_test(seed)
        sizes = self.sizes()
        wanted = (sizes.attack_poison, sizes.server_poison)
        if (given := self._poison) is not None:
            pools, originals = pools_of_examples(given, wanted, seed), None
            clean = without(clean, given.inputs)
        else:
            clean, pools, originals = pools_by_function(
                self._change, self.aim(), clean, test, wanted=wanted, seed=seed
            )
        warm, server, attacker, clients = split_examples(clean, sizes.clean(), seed)
        return TaskData(
            module=module,
            warm=warm,
            clients=clients,
            attacker=AttackerData(attacker, pools.attacker),
            server_clean=server,
            server_poison=pools.defense,
            test=test,
            backdoor_test=pools.test,
            aim=self.aim(),
            originals=originals,
            few_poisoned=len(pools.defense) < sizes.server_poison,  # some were equal
        )

    def _clean_and_test(self, seed: int) -> tuple[Examples, Examples]:
        """Return what is trained on and what is judged by; nothing is in both."""
        train, test = self._train, self.test
        if not isinstance(test, Examples):
            order = torch.randperm(len(train), generator=generator(seed, "test"))
            rows = self._training_rows()
            train, test = train.take(order[:rows]), train.take(order[rows:])
        return without(train, test.inputs), test


def _or(value: int | None, default: int) -> int:
    return default if value is None else value


def _batch(examples: int) -> int:
    """Return a batch size at which so few examples make a few steps."""
    return min(32, max(4, examples // 4))
