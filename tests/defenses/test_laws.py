"""Every registered defense keeps every law, with default and with other settings."""

from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch

from datadefense.defenses import (
    DEFENSES,
    Bulyan,
    FedAvg,
    FlTrust,
    Krum,
    MultiKrum,
    Ndc,
    Rfa,
    SparseFed,
    TrimmedMean,
    WeakDp,
)
from datadefense.defenses.base import Combined, Promise, Rule
from datadefense.testing import LAWS, check_defense, toy_server

CASES = [make() for make in DEFENSES.values()] + [
    Krum(num_malicious=0),
    Krum(num_malicious=3),
    MultiKrum(num_malicious=2, weighting="examples"),
    Bulyan(num_malicious=0),
    Bulyan(num_malicious=2),
    TrimmedMean(num_malicious=0),
    TrimmedMean(num_malicious=4),
    Rfa(max_iterations=200, tolerance=1e-5, smoothing=1e-3),
    Ndc(norm_bound=0.5),
    WeakDp(noise_std=0.0),
    SparseFed(norm_bound=0.05, top_fraction=0.3, momentum=0.9),
    SparseFed(top_fraction=1.0),
    FlTrust(epochs=2, batch_size=7, momentum=0.0),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("defense", CASES, ids=repr)
def test_law(defense, law):
    law(defense, toy_server())


def test_names_in_the_registry_are_the_classes_own():
    assert {name: make.name for name, make in DEFENSES.items()} == {name: name for name in DEFENSES}


@dataclass(frozen=True, slots=True)
class Liar(Rule):
    """Break one law after another, to show that the suite can fail."""

    fault: str = ""
    name: ClassVar[str] = "liar"
    promises: ClassVar[Promise] = FedAvg.promises | Promise.BOUNDED

    def combine(self, round):
        weights = round.shares()
        update = weights @ round.updates
        if self.fault == "writes":
            round.updates.mul_(1.0)
        if self.fault == "random":
            update = update + torch.rand(1)
        if self.fault == "weights":
            weights = weights * 2
        if self.fault == "order":
            update = round.updates[0]
            weights = torch.zeros_like(weights)
            weights[0] = 1
        if self.fault == "global":
            update = update + 0.1 * round.global_params
        if self.fault == "nan":
            update = update * float("nan")
        if self.fault == "small" and round.num_clients < 3:
            raise ZeroDivisionError
        if self.fault == "shape":
            weights = weights[:-1]
        return Combined(update, weights)


@pytest.mark.parametrize(
    ("fault", "law"),
    [
        ("writes", "inputs_are_untouched"),
        ("random", "same_input_same_bits"),
        ("weights", "result_is_well_formed"),
        ("shape", "result_is_well_formed"),
        ("nan", "result_is_well_formed|same_input_same_bits"),
        ("order", "order_of_clients_does_not_matter"),
        ("global", "result_is_well_formed|global_model_is_only_added"),
        ("", "size_does_not_help_an_attacker"),
    ],
)
def test_the_suite_catches_a_broken_defense(fault, law):
    with pytest.raises(AssertionError, match=law):
        check_defense(Liar(fault))


def test_the_suite_lets_exceptions_through():
    with pytest.raises(ZeroDivisionError):
        for law in LAWS:
            if law.__name__ == "small_rounds_are_survived":
                law(Liar("small"), toy_server())
