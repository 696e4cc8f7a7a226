"""Every registered pre-aggregator keeps every law; for each law there is one that breaks it."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

from datadefense.core.defense import Promise
from datadefense.core.preaggregator import Mixed, Mixer
from datadefense.core.settings import setting
from datadefense.preaggregators import PREAGGREGATORS, Bucketing, Nnm
from datadefense.testing import PREAGGREGATOR_LAWS, BrokenLawError, check_preaggregator

CASES = [make() for make in PREAGGREGATORS.values()] + [Bucketing(bucket_size=3), Nnm(3)]


@pytest.mark.parametrize("part", CASES, ids=repr)
def test_ours_keep_the_laws(part):
    check_preaggregator(part)


@dataclass(frozen=True, slots=True)
class Faulty(Mixer):
    """Change nothing; with a fault, break one law."""

    fault: str = setting("", "which law is broken")
    name: ClassVar[str] = "faulty"
    keeps: ClassVar[Promise] = Promise.SYMMETRIC | Promise.WEIGHTED | Promise.SUMS_TO_ONE

    def num_rows(self, num_clients):
        return num_clients + (self.fault == "counts wrong")

    def shortage(self, num_clients):
        return "never enough" if self.fault == "greedy" else None

    def mix(self, round, server):
        factor = 0.5 if self.fault == "claims too much" else 1.0
        return Mixed(torch.full((round.num_clients,), factor, dtype=torch.float64))

    def prepare(self, state, round, server):
        made = Mixer.prepare(self, state, round, server)
        if self.fault == "renames":
            ids = tuple(f"row {row}" for row in range(round.num_clients))
            return replace(made, round=replace(made.round, client_ids=ids))
        if self.fault == "moves the model":
            return replace(made, round=replace(made.round, global_params=round.global_params + 1))
        if self.fault == "doubles":
            return replace(made, round=replace(made.round, updates=2 * round.updates))
        if self.fault == "short origin":
            return replace(made, origin=made.origin[1:])
        return made


FAULTS = [
    (
        "counts wrong",
        r"rows_are_those_announced: 11 clients: rows are \(11, 603\), not \(12, 603\)",
    ),
    ("renames", "rows_are_those_announced: one_row_a_client is True"),
    ("moves the model", "rows_are_those_announced: the global model or the index changed"),
    ("greedy", "rows_are_those_announced: shortage refuses rounds"),
    ("doubles", "origin_explains_the_rows: the rows and origin @ updates: off by"),
    ("short origin", r"origin_explains_the_rows: the origin has shape \(10, 10\), not \(11, 11\)"),
    ("claims too much", "promises_are_kept: .* breaks .*: the sum of the weights"),
]


def test_without_a_fault_it_keeps_the_laws():
    check_preaggregator(Faulty())


@pytest.mark.parametrize(("fault", "message"), FAULTS)
def test_a_fault_is_caught(fault, message):
    with pytest.raises(BrokenLawError, match=message):
        check_preaggregator(Faulty(fault))


@dataclass(frozen=True, slots=True)
class Holder(Faulty):
    """Has a setting that cannot be stored."""

    shares: tuple[float, ...] = setting((0.1, 0.2), "shares")


def test_the_law_on_settings_has_teeth():
    with pytest.raises(BrokenLawError, match="settings_are_plain: the setting shares is a tuple"):
        check_preaggregator(Holder())


def test_every_law_is_broken_by_somebody():
    caught = {message.partition(":")[0] for _, message in FAULTS} | {"settings_are_plain"}
    assert caught == {law.__name__ for law in PREAGGREGATOR_LAWS}
