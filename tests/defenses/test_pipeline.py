"""Compositions keep the laws and their promises, and say what they did of each client."""

from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.strategies import rounds

from datadefense import Need, Promise, Round, Server, create
from datadefense.core.outcomes import outcomes_of
from datadefense.core.preaggregator import PreAggregator, Prepared
from datadefense.core.settings import SettingsError
from datadefense.defenses import FedAvg, Krum, Median, Pipeline
from datadefense.preaggregators import Bucketing, Clip, Nnm
from datadefense.testing import LAWS, BrokenLawError, check_defense, toy_round, toy_server

CASES = [
    create("nnm+krum"),
    create("nnm+multi-krum", {"nnm.num_malicious": 2, "multi-krum.num_malicious": 2}),
    create("nnm+bulyan"),
    create("bucketing+krum"),
    create("bucketing+median", {"bucket_size": 3}),
    create("bucketing+sparsefed"),
    create("clip+fedavg"),
    create("clip+weak-dp"),
    create("arc+rfa", {"num_malicious": 3}),
    create("median+server-step", {"step_size": 3.0}),
    create("krum+server-momentum"),
    create("trimmed-mean+fedadam"),
    create("clip+nnm+multi-krum+fedadam"),
    create("clip+arc+nnm+bucketing+fedavg+server-step+server-momentum+fedadam"),
    create("bucketing+fltrust"),
    create("nnm+datadefense"),
    create("bucketing+datadefense"),
]


@pytest.mark.parametrize("law", LAWS, ids=lambda law: law.__name__)
@pytest.mark.parametrize("defense", CASES, ids=lambda defense: defense.name)
def test_law(defense, law):
    law(defense, toy_server())


def test_promises_are_what_every_part_keeps():
    assert create("nnm+krum").promises == Krum.promises
    assert Promise.BOUNDED not in create("bucketing+krum").promises
    assert Promise.SUMS_TO_ONE not in create("clip+krum").promises
    assert create("krum+fedadam").promises == (
        Promise.SYMMETRIC | Promise.TRANSLATES | Promise.BOUNDED
    )
    assert Promise.SIGNED in create("clip+datadefense-released").promises


def test_what_bucketing_does_not_keep():
    """Two rows of which an attacker is in one: hence no BOUNDED, and hence rows >= 2f + 1."""
    round = toy_round(12)
    round.updates[0] = 1e30
    part = Bucketing(bucket_size=6)
    rows = part.prepare(None, round, Server()).round
    result = Median().aggregate(None, rows, Server())
    assert (result.params - round.global_params).norm() > 1e20
    defense = Pipeline((part,), Median())
    result = defense.aggregate(defense.init(Server(), round.global_params), round, Server())
    assert "took the median of each coordinate" in result.report["fallback"]
    assert (result.params - round.global_params).norm() < 1


def test_needs_are_those_of_all_parts():
    assert create("clip+krum").needs == Need.NONE
    assert create("nnm+fltrust").needs == Need.MODEL | Need.CLEAN_EXAMPLES
    with pytest.raises(ValueError, match=r"nnm\+fltrust needs a model and clean examples on the s"):
        create("nnm+fltrust").check_needs(Server().offers())


def test_the_least_number_of_attackers_is_what_all_parts_bear():
    made = create("nnm+krum", {"nnm.num_malicious": 3, "krum.num_malicious": 2})
    assert made.assumed_malicious() == 2
    assert create("clip+median").assumed_malicious() == 1
    assert create("arc+krum", {"arc.num_malicious": 0}).assumed_malicious() == 0


@given(rounds(min_clients=7), st.sampled_from(["nnm", "bucketing", "clip+bucketing", "arc+nnm"]))
@settings(deadline=None)
def test_weights_come_back_to_clients(round, before):
    """The rule's weights of rows, times how the rows were made, one stage after the other."""
    defense = create(f"{before}+multi-krum")
    result = defense.aggregate(defense.init(Server(), round.global_params), round, Server())
    if "fallback" in result.report:
        return
    made = result.params.double() - round.global_params.double()
    wanted = result.weights.double() @ round.updates.double()
    assert torch.allclose(made, wanted, atol=1e-4)
    assert bool((result.weights >= 0).all())


def test_evidence_and_report_say_whose_they_are():
    round = toy_round(9)
    server = toy_server()
    defense = create("clip+krum", {"norm_bound": 0.1})
    result = defense.aggregate(defense.init(server, round.global_params), round, server)
    assert list(result.evidence) == ["clip.norm", "clip.scale", "mixed.score"]
    assert result.report == {"clip.norm_bound": 0.1}
    outcomes = outcomes_of(result, round, ())
    assert [outcome.verdict for outcome in outcomes].count("excluded") == 8
    assert all(outcome.reason for outcome in outcomes if outcome.verdict == "excluded")
    defense = create("clip+nnm+krum+fedadam")
    result = defense.aggregate(defense.init(server, round.global_params), round, server)
    assert list(result.evidence) == ["clip.norm", "clip.scale", "nnm.rows", "mixed.score"]


@dataclass(frozen=True, slots=True)
class Watcher(PreAggregator[None]):
    """Look at the round and pass it on."""

    name: ClassVar[str] = "watcher"

    def init(self, server, params):
        return None

    def prepare(self, state, round, server):
        return Prepared(round, None, torch.ones(round.num_clients, dtype=torch.float64))


def test_a_scaled_rows_norm_is_not_the_clients():
    round, server = toy_round(9), Server()
    defense = create("clip+ndc", {"clip.norm_bound": 0.1, "ndc.norm_bound": 0.05})
    result = defense.aggregate(defense.init(server, round.global_params), round, server)
    assert "norm" not in result.evidence
    assert torch.allclose(result.evidence["mixed.norm"].float(), torch.full((9,), 0.1))
    assert torch.allclose(result.evidence["clip.norm"].float(), round.updates.norm(dim=1))
    defense = Pipeline((Watcher(),), create("ndc"))
    result = defense.aggregate(defense.init(server, round.global_params), round, server)
    assert "norm" in result.evidence, "nothing was changed"


@dataclass(frozen=True, slots=True)
class Signs(PreAggregator[int]):
    """Keep signs only and count the rounds: not linear, and with memory."""

    name: ClassVar[str] = "signs"
    keeps: ClassVar[Promise] = Promise.SYMMETRIC | Promise.TRANSLATES | Promise.BOUNDED

    def init(self, server, params):
        return 0

    def prepare(self, state, round, server):
        made = replace(round, updates=round.updates.sign())
        return Prepared(made, state + 1, report={"seen": state + 1})


def test_a_part_with_memory_that_is_not_linear():
    defense = Pipeline((Signs(),), Krum())
    check_defense(defense)
    round, server = toy_round(), toy_server()
    state = defense.init(server, round.global_params)
    for seen in (1, 2):
        result = defense.aggregate(state, round, server)
        state = result.state
        assert (result.report["signs.seen"], result.weights) == (seen, None)
    assert state.before == (2,)


@dataclass(frozen=True, slots=True)
class Boaster(Clip):
    """Claim that weights sum to one, which clipping does not keep."""

    name: ClassVar[str] = "boaster"
    keeps: ClassVar[Promise] = Clip.keeps | Promise.SUMS_TO_ONE


def test_the_laws_catch_a_part_that_claims_too_much():
    with pytest.raises(BrokenLawError, match="the sum of the weights"):
        check_defense(Pipeline((Boaster(),), FedAvg()))


@dataclass(frozen=True, slots=True)
class ById(FedAvg):
    """A rule that knows clients again."""

    name: ClassVar[str] = "by-id"
    needs: ClassVar[Need] = Need.CLIENT_IDENTITY


def test_a_rule_that_knows_clients_does_not_stand_behind_buckets():
    Pipeline((Nnm(), Clip()), ById())
    with pytest.raises(SettingsError, match="by-id knows clients by their ids"):
        Pipeline((Bucketing(),), ById())


def test_pipelines_are_not_nested():
    with pytest.raises(SettingsError, match="must not be a pipeline"):
        Pipeline((Clip(),), create("nnm+krum"))


def test_behind_a_part_that_only_scales_a_rules_reasons_are_the_clients():
    updates = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    updates[2] += 50
    round = Round(1, torch.zeros(4), updates, torch.full((6,), 5), tuple(range(6)))
    for name in ("clip+multi-krum", "multi-krum"):
        defense = create(name)
        result = defense.aggregate(defense.init(Server(), torch.zeros(4)), round, Server())
        (place,) = [row for row, reason in enumerate(result.reasons) if reason is not None]
        assert result.reasons[place].code == "krum_score"
    mixed = create("nnm+multi-krum")
    result = mixed.aggregate(mixed.init(Server(), torch.zeros(4)), round, Server())
    assert not any(result.reasons), "a row of nnm is several clients"
