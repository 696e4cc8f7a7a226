"""Every registered defense keeps every law, with default and with other settings."""

import subprocess
import sys
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

from datadefense.core.defense import Combined, Defense, Promise, Rule
from datadefense.core.detector import DetectorRecord
from datadefense.core.errors import InputError
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate
from datadefense.defenses import (
    DEFENSES,
    AlignIns,
    Bulyan,
    Caf,
    CenteredClipping,
    Dnc,
    FedAvg,
    Flame,
    FlTrust,
    FoolsGold,
    Krum,
    MultiKrum,
    MultiMetrics,
    Ndc,
    Pipeline,
    Rfa,
    Rlr,
    SignGuard,
    SparseFed,
    TrimmedMean,
    WeakDp,
    WeightedMedian,
    WeightedTrimmedMean,
)
from datadefense.preaggregators import Clip
from datadefense.testing import LAWS, BrokenLawError, check_defense, toy_server
from datadefense.testing.broken import naming


def begun_soon(defense):
    """The same, with few steps before the first round: no law is about their number."""
    return replace(defense, start_steps=3) if hasattr(defense, "start_steps") else defense


CASES = [begun_soon(make()) for make in DEFENSES.values()] + [
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
    Flame(0.0, "updates", "examples"),
    FoolsGold(remember=3),
    Rlr(num_malicious=2, threshold=0.4),
    AlignIns(direction_limit=2.0, sign_limit=1.5, top_fraction=0.1),
    CenteredClipping(radius=0.1, iterations=3),
    MultiMetrics(keep=0.5, space="updates"),
    WeightedMedian(max_share=0.1),
    WeightedTrimmedMean(num_malicious=3, max_share=0.4),
    SignGuard(norm_low=0.5, norm_high=1.5, block_fraction=1.0),
    Caf(num_malicious=4),
    Dnc(num_malicious=2, iterations=3, coordinates=100, filter_factor=0.5),
]


def marked(defense):
    """Those that train a network in every round take seconds."""
    slow = [pytest.mark.slow] if hasattr(defense, "theta_rate") else []
    return pytest.param(defense, marks=slow, id=repr(defense))


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("defense", [marked(defense) for defense in CASES])
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
        if self.fault == "works" and float(round.updates.abs().max()) > 1e3:
            for _ in range(100):
                round.updates.sum(0)
        evidence = {"size": round.updates.abs().amax(1).square()} if self.fault == "inf" else {}
        report = {"size": torch.inf} if self.fault == "report" else {}
        return Combined(update, weights, evidence, report)


@dataclass(frozen=True, slots=True, eq=False)
class Kept:
    """What a defense has kept of a round."""

    tensor: torch.Tensor


@dataclass(frozen=True, slots=True)
class Keeper(Defense[Kept]):
    """Keep something of each round and average it in, as a defense with momentum would."""

    keeps: str = "copy"
    name: ClassVar[str] = "keeper"
    promises: ClassVar[Promise] = Promise.NONE

    def init(self, server, params):
        return Kept(torch.zeros_like(params))

    def aggregate(self, state, round, server):
        update = round.shares() @ round.updates
        kept = {
            "copy": round.updates[0].clone(),
            "update": round.updates[0],
            "model": round.global_params,
        }[self.keeps]
        params = round.global_params + update + 0.1 * state.tensor
        return Aggregate(params, Kept(kept))


@pytest.mark.parametrize("keeps", ["update", "model"])
def test_the_suite_catches_a_state_that_is_a_view_of_the_round(keeps):
    """The simulator writes the next round over it; it passed every law."""
    check_defense(Keeper("copy"))
    with pytest.raises(BrokenLawError, match="nothing_rests_on_the_rounds_memory: the state"):
        check_defense(Keeper(keeps))


@dataclass(frozen=True, slots=True)
class Shower(Keeper):
    """Show a part of the round as evidence."""

    def aggregate(self, state, round, server):
        plain = Keeper.aggregate(self, state, round, server)
        return replace(plain, evidence={"first": round.updates[:, 0]})


def test_the_suite_catches_evidence_that_is_a_view_of_the_round():
    with pytest.raises(BrokenLawError, match="the evidence changed when the round's memory"):
        check_defense(Shower())


class Undecorated(Liar):
    """A subclass whose fields are no settings."""

    factor: float = 0.5


@dataclass
class Thawed(Rule):
    """Not frozen."""

    name: ClassVar[str] = "thawed"
    promises: ClassVar[Promise] = Promise.NONE

    def combine(self, round):
        return Combined(round.updates.mean(0))


@dataclass(frozen=True)
class Nameless(Rule):
    """Without a name."""

    promises: ClassVar[Promise] = Promise.NONE

    def combine(self, round):
        return Combined(round.updates.mean(0))


@dataclass(frozen=True)
class Silent(Rule):
    """Promises are not said: no law would hold it to any."""

    name: ClassVar[str] = "silent"

    def combine(self, round):
        return Combined(round.updates.mean(0))


@dataclass(frozen=True)
class Untyped(Silent):
    """Promises are no Promise."""

    promises: ClassVar = "symmetric"


@pytest.mark.parametrize(
    ("defense", "message"),
    [
        (Undecorated(), "Undecorated is not a frozen dataclass"),
        (Thawed(), "Thawed is not a frozen dataclass"),
        (Nameless(), "name must be a text, got None"),
        (Silent(), "promises must be stated: Promise.NONE if it promises nothing"),
        (Untyped(), "promises must be stated"),
        (Pipeline((Clip(),), Silent()), "promises must be stated"),
    ],
)
def test_the_law_on_settings_has_teeth(defense, message):
    with pytest.raises(BrokenLawError, match=f"breaks settings_are_plain: {message}"):
        law = law_named("settings_are_plain")
        with naming(defense, law):
            law(defense, toy_server())


def test_a_slip_in_calling_the_suite_is_one_sentence():
    with pytest.raises(InputError) as caught:
        check_defense(Silent)
    said = "check_defense takes a Defense, got the class Silent: write check_defense(Silent())"
    assert str(caught.value) == said
    with pytest.raises(InputError, match="^check_defense takes a Defense, got a str$"):
        check_defense("krum")


def law_named(name):
    return next(law for law in LAWS if law.__name__ == name)


def test_the_law_on_work_has_teeth():
    """A hundred passes more where an update is large: caught by its count, not by a clock."""
    law = law_named("attackers_cannot_make_it_work")
    law(Liar(""), toy_server())
    with pytest.raises(BrokenLawError, match=r"huge, all ways: \d+\.\d > 8 times the work"):
        law(Liar("works"), toy_server())


@pytest.mark.parametrize(
    ("fault", "message"),
    [("inf", "evidence 'size' is not finite"), ("report", "the report is not JSON")],
)
def test_the_law_on_what_is_said_has_teeth(fault, message):
    law = law_named("what_it_says_is_finite")
    law(Liar(""), toy_server())
    with pytest.raises(BrokenLawError, match=message):
        law(Liar(fault), toy_server())


@dataclass(frozen=True, slots=True)
class Mumbler(Rule):
    """Give reasons, marks and theta that are of no use."""

    fault: str = ""
    name: ClassVar[str] = "mumbler"

    def combine(self, round):
        raise NotImplementedError

    def aggregate(self, state, round, server):
        reasons = {"number": Reason("norm"), "words": Reason(""), "": Reason("far", 1.0)}
        detector = DetectorRecord({"x": 0.5}, ["y"]) if self.fault == "marks" else None
        theta = {"norm": torch.nan} if self.fault == "theta" else {}
        return Aggregate(
            round.global_params + round.shares() @ round.updates,
            None,
            round.shares(),
            reasons=[reasons.get(self.fault)] * round.num_clients,
            detector=detector,
            theta=theta,
        )


@pytest.mark.parametrize(
    ("fault", "message"),
    [
        ("number", r"client 100 has a reason without its number: norm \?, clipped to \?"),
        ("words", "client 100 was reduced with the reason ''"),
        ("marks", r"marked examples have no suspicion: \['y'\]"),
        ("theta", "theta is not finite"),
    ],
)
def test_the_law_on_outcomes_has_teeth(fault, message):
    law = law_named("everybody_has_an_outcome")
    law(Mumbler(), toy_server())
    with pytest.raises(BrokenLawError, match=message):
        law(Mumbler(fault), toy_server())


@pytest.mark.slow
def test_laws_hold_under_python_without_asserts(tmp_path):
    """``python -O`` removes every assert, and with them every law."""
    script = tmp_path / "check.py"
    script.write_text(
        "from dataclasses import dataclass\n"
        "from datadefense.defenses import FedAvg, Promise\n"
        "from datadefense.testing import BrokenLawError, check_defense\n"
        "@dataclass(frozen=True, slots=True)\n"
        "class Liar(FedAvg):\n"
        "    promises = FedAvg.promises | Promise.BOUNDED\n"
        "try:\n"
        "    check_defense(Liar())\n"
        "except BrokenLawError as error:\n"
        "    print(error)\n"
    )
    done = subprocess.run(
        [sys.executable, "-O", str(script)], capture_output=True, text=True, check=True
    )
    assert "breaks size_does_not_help_an_attacker: updates of" in done.stdout


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
    with pytest.raises(BrokenLawError, match=law):
        check_defense(Liar(fault))


def test_the_suite_lets_exceptions_through():
    with pytest.raises(ZeroDivisionError):
        for law in LAWS:
            if law.__name__ == "small_rounds_are_survived":
                law(Liar("small"), toy_server())
