"""Every registered attack keeps every law; for each law there is an attack that breaks it."""

from dataclasses import dataclass
from typing import Any, ClassVar

import pytest
import torch

from datadefense.attacks import (
    ATTACKS,
    Attack,
    DataPoisoning,
    Drip,
    FangKrum,
    FangTrim,
    Gaussian,
    Ipm,
    Lie,
    MinMax,
    MinSum,
    Oracle,
    Sees,
    Threat,
)
from datadefense.attacks.base import seed_module
from datadefense.attacks.collusion import Plot
from datadefense.core.settings import setting
from datadefense.testing import BrokenLawError, check_attack

CASES = [make() for make in ATTACKS.values()] + [
    DataPoisoning(poison_share=1.0),
    Lie(imitations=2, z=0.5),
    Drip(slack=0.03),
    Oracle(knowledge="nothing"),
    Oracle(knowledge="rule"),
    MinMax(knowledge="nothing"),
    MinSum(knowledge="nothing", bound="min"),
    FangTrim(knowledge="nothing"),
    FangKrum(knowledge="nothing"),
    Ipm(knowledge="nothing"),
    Gaussian(spread="honest"),
]


@pytest.mark.parametrize("attack", CASES, ids=repr)
def test_ours_keep_the_laws(attack):
    check_attack(attack)


@dataclass(frozen=True, slots=True, eq=False)
class Memory:
    """What the faulty attack remembers."""

    last: torch.Tensor
    rounds: int = 0
    thing: Any = None


@dataclass(frozen=True, slots=True)
class Faulty(Attack):
    """Train on everything; with a fault, break one law."""

    fault: str = setting("", "which law is broken")
    name: ClassVar[str] = "faulty"
    threat: ClassVar[Threat] = Threat("everything")

    def update(self, trainer, data, context):
        if self.fault != "unseeded":
            seed_module(context)
        draw = torch.Generator() if self.fault == "random" else context.generator("order")
        if self.fault == "random":
            draw.seed()
        if self.fault == "leftovers":
            trainer.module.train()
        else:
            trainer.load(context.start)
        trainer.train(context.training, data.mixed(), draw)
        update = trainer.write_update(context.start, torch.empty_like(context.start))
        if context.state is not None:
            update = update + 0.1 * context.state.last + 0.01 * context.state.rounds
        if self.fault == "writes":
            data.clean.inputs.mul_(1.0)
        if self.fault == "moves the model":
            context.start.add_(1.0)
        return {
            "shape": update[:-1],
            "number": 3.0,
            "wide": update.double(),
            "shares": context.start,
            "rejectable": update * torch.nan,
        }.get(self.fault, update)

    def sees(self):
        return Sees.HONEST_UPDATES if self.fault == "peeks" else Sees.NOTHING

    def honest_trainings(self, others):
        return {"fewer": max(0, 5 - others), "negative": -1}.get(self.fault, 2)

    def agree(self, view):
        sent = view.round.updates[view.attacks]
        if self.fault == "writes the view":
            view.stand_ins.mul_(2.0)
        if self.fault == "agrees on one":
            return Plot(sent[:1])
        if self.fault == "odd figure":
            return Plot(sent, {"step": float("nan")})
        if self.fault == "agrees at random":
            return Plot(sent + torch.rand(1, generator=torch.Generator().manual_seed(_next())))
        return None

    def init(self, start):
        if self.fault == "keeps the model":
            return Memory(start)
        return Memory(torch.zeros_like(start))

    def remember(self, state, sent, context):
        if self.fault == "writes the state":
            state.last.add_(1.0)
        thing = [1, 2] if self.fault == "remembers a list" else None
        last = sent[0] if self.fault == "keeps the round" else sent[0].clone()
        return Memory(last, state.rounds + 1, thing)


COUNTER = iter(range(1000))


def _next():
    return next(COUNTER)


def test_the_faulty_attack_keeps_the_laws_without_a_fault():
    check_attack(Faulty())
    check_attack(Faulty("rejectable"))


@pytest.mark.parametrize(
    ("fault", "law", "message"),
    [
        ("fewer", "honest_trainings_never_fewer", r"honest_trainings\(1\) = 4 < 5 of fewer"),
        ("negative", "honest_trainings_never_fewer", r"honest_trainings\(0\) gave -1"),
        ("shape", "update_is_a_vector", r"is \(\(\d+,\), torch.float32\), the model is"),
        ("wide", "update_is_a_vector", "torch.float64"),
        ("number", "update_is_a_vector", "is a float, not a tensor"),
        ("agrees on one", "update_is_a_vector", r"agree gave updates of shape \(1, \d+\), not \(2"),
        ("odd figure", "update_is_a_vector", "the figure 'step' = nan"),
        ("writes", "what_it_is_given_stays", "it wrote to what it was given"),
        ("moves the model", "what_it_is_given_stays", "it wrote to what it was given"),
        ("writes the view", "what_it_is_given_stays", "it wrote to what it was given"),
        ("shares", "what_it_is_given_stays", "the update shares memory"),
        ("random", "same_seed_same_bits", "two calls gave two updates"),
        ("unseeded", "same_seed_same_bits", "two calls gave two updates"),
        ("leftovers", "same_seed_same_bits", "two calls gave two updates"),
        ("agrees at random", "same_seed_same_bits", "agreed on something else"),
        ("remembers a list", "state_survives_a_file", "cannot be saved and loaded"),
        ("writes the state", "state_survives_a_file", "remember wrote to the state"),
        ("keeps the model", "state_rests_on_no_lent_memory", "the first state changed"),
        ("keeps the round", "state_rests_on_no_lent_memory", "the state changed when the round's"),
    ],
)
def test_each_law_has_teeth(fault, law, message):
    with pytest.raises(BrokenLawError, match=rf"breaks {law}: .*{message}"):
        check_attack(Faulty(fault))


@dataclass(frozen=True, slots=True)
class Elsewhere(DataPoisoning):
    """Counts in its module, not in its state."""

    def init(self, start):
        return {"rounds": 0}

    def remember(self, state, sent, context):
        return {"rounds": _next()}


def test_a_memory_outside_the_state_is_caught():
    with pytest.raises(BrokenLawError, match="the resumed attack remembers something else"):
        check_attack(Elsewhere())


@dataclass(frozen=True, slots=True)
class Undeclared(Attack):
    """Says nothing of what it knows."""

    name: ClassVar[str] = "undeclared"

    def update(self, trainer, data, context):
        return torch.zeros_like(context.start)


@dataclass(frozen=True, slots=True)
class Modest(Faulty):
    """Sees honest updates, and does not say so."""

    threat: ClassVar[Threat] = Threat()


@dataclass(frozen=True, slots=True)
class Nameless(Faulty):
    """Has no name."""

    name: ClassVar[str] = ""


class Loose(Faulty):
    """No dataclass of its own."""


@dataclass(frozen=True, slots=True)
class Holder(Faulty):
    """Has a setting that cannot be stored."""

    rates: tuple[float, ...] = setting((0.1, 0.2), "step sizes")


@dataclass(frozen=True)
class Required(Attack):
    """Has a setting without a default."""

    rate: float
    name: ClassVar[str] = "required"
    threat: ClassVar[Threat] = Threat("nothing")

    def update(self, trainer, data, context):
        return torch.zeros_like(context.start)


@pytest.mark.parametrize(
    ("attack", "message"),
    [
        (Undeclared(), "threat_is_declared: threat is not declared"),
        (Modest("peeks"), "threat_is_declared: it sees .*HONEST_UPDATES.*, and says it knows own"),
        (Nameless(), "threat_is_declared: name must be a text, got ''"),
        (Loose(), "settings_are_plain: Loose is not a frozen dataclass"),
        (Holder(), "settings_are_plain: the setting rates is a tuple"),
        (Required(0.1), "settings_are_plain: the setting rate has no default"),
    ],
)
def test_the_laws_on_what_it_declares_have_teeth(attack, message):
    with pytest.raises(BrokenLawError, match=message):
        check_attack(attack)
