"""Attackers who agree on what they send: what they see, and that runs with them stay exact."""

import dataclasses
import math
from dataclasses import dataclass, replace

import pytest
import torch
from tests.simulation import played
from tests.simulation.played import without_times
from tests.simulation.tiny import clouds, poisoned, tiny_federation
from torch.nn.functional import cross_entropy

from datadefense import DefenseSet, Server, load_state, save_state
from datadefense.attacks.base import Attack, AttackerData, Sees
from datadefense.attacks.collusion import Plot
from datadefense.attacks.oracle import LEVELS, Oracle
from datadefense.attacks.trial import true_trial
from datadefense.core.features import penultimate
from datadefense.core.outcomes import Verdict
from datadefense.core.predictor import predictor
from datadefense.core.settings import SettingsError
from datadefense.defenses import DEFENSES, FedAvg
from datadefense.schedules import FixedFrequency, FixedPool
from datadefense.simulation.rounds import stand_in_jobs, train_jobs

CLEAN, POISON = clouds(40, 31), poisoned(15, 32)
EVERYTHING = Sees.HONEST_UPDATES | Sees.RULE | Sees.SERVER


def attacked_by(knowledge="everything", **changes):
    attack = Oracle(epochs=3, learning_rate=0.02, knowledge=knowledge)
    fields = {
        "attack": attack,
        "attacker_data": attack.holdings(AttackerData(clouds(20, 4), poisoned(20, 5)), 20),
        "clients_per_round": 8,
        "schedule": FixedPool(share=1 / 3),
    }
    return tiny_federation(**(fields | changes))


def server_of(federation):
    examples = CLEAN.join(POISON)
    features = penultimate(federation.module, examples.inputs)
    owned = DefenseSet(examples, torch.arange(len(examples)) < 20, features)
    return Server(predictor(federation.module, federation.layout), CLEAN, 0, owned)


def play(federation, name="krum", rounds=3, workers=0, progress=None):
    return played.play(federation, name, rounds, workers, progress, server=server_of(federation))


@pytest.mark.parametrize("knowledge", LEVELS)
@pytest.mark.parametrize("name", DEFENSES)
def test_every_defense_can_be_called(name, knowledge):
    records, progress = play(attacked_by(knowledge), name, rounds=2)
    assert bool(progress.params.isfinite().all())
    for record in records:
        assert record.attackers
        assert 0 <= record.attack["step"] <= record.attack["evasion_budget"] <= 30


@pytest.mark.parametrize("knowledge", LEVELS)
@pytest.mark.parametrize("name", ["krum", "datadefense"])
def test_the_same_bits_for_any_number_of_workers(name, knowledge):
    federation = attacked_by(knowledge)
    records, progress = play(federation, name)
    others, other = play(federation, name, workers=2)
    assert torch.equal(other.params, progress.params)
    assert without_times(others) == without_times(records)


@pytest.mark.parametrize("knowledge", LEVELS)
@pytest.mark.parametrize("name", ["sparsefed", "datadefense"])
def test_stopping_and_going_on_changes_nothing(name, knowledge, tmp_path):
    federation = attacked_by(knowledge)
    records, whole = play(federation, name, rounds=4)
    first, middle = play(federation, name, rounds=2)
    save_state(tmp_path / "progress", middle)
    loaded = load_state(tmp_path / "progress", like=middle)
    second, end = play(federation, name, rounds=4, progress=loaded)
    assert torch.equal(end.params, whole.params)
    assert without_times(first + second) == without_times(records)


@pytest.mark.parametrize("name", ["krum", "multi-krum", "ndc", "rfa", "datadefense"])
def test_who_sees_everything_gets_the_weight_that_it_was_promised(name):
    """The true round is the last trial, to the bit."""
    records, _ = play(attacked_by(), name, rounds=6)
    stepped = [record for record in records if record.attack["step"] > 0]
    assert stepped
    for record in stepped:
        weights = record.known_weights()
        own = [weights[attacker] for attacker in record.attackers]
        assert sum(own) / len(own) >= 0.5 / 8


def test_the_backdoor_goes_in_undefended():
    records, _ = play(attacked_by(), "fedavg", rounds=6)
    assert records[-1].asr_percent > 80
    assert records[-1].ma_percent > 60


def test_an_attack_that_agrees_on_nothing_has_no_figures():
    records, _ = play(tiny_federation(), "fedavg", rounds=2)
    assert [record.attack for record in records] == [{}, {}]


def test_a_round_without_attackers_has_no_figures():
    federation = attacked_by(schedule=FixedFrequency(period=2))
    records, _ = play(federation, "fedavg", rounds=4)
    assert [bool(record.attack) for record in records] == [True, False, True, False]


@pytest.mark.parametrize("knowledge", LEVELS)
@pytest.mark.parametrize("name", ["fedavg", "median", "datadefense"])
@pytest.mark.parametrize("slots", [1, 3])
def test_rounds_of_attackers_only(slots, name, knowledge):
    federation = attacked_by(
        knowledge,
        clients_per_round=slots,
        schedule=FixedFrequency(period=1, attackers=slots),
    )
    records, progress = play(federation, name, rounds=2)
    assert bool(progress.params.isfinite().all())
    assert all(len(record.attackers) == slots for record in records)


@dataclass(frozen=True)
class Witness(Attack):
    """Sends nothing, whatever it trained, and keeps what it saw."""

    seen: list
    claims: object = 20
    shown: Sees = EVERYTHING

    def update(self, trainer, data, context):
        return torch.full_like(context.start, math.nan)

    def num_examples(self, data):
        return self.claims

    def sees(self):
        return self.shown

    def honest_trainings(self, others):
        return others // 2

    def agree(self, view):
        self.seen.append(replace(view, round=replace(view.round, updates=view.round.updates + 0)))
        return Plot(torch.zeros(int(view.attacks.sum()), view.round.updates.shape[1]), {"told": 1})


def witnessed(rounds=2, claims=20, shown=EVERYTHING, name="fedavg"):
    witness = Witness([], claims, shown)
    federation = attacked_by(attack=witness)
    records, progress = play(federation, name, rounds)
    return federation, witness.seen, records, progress


def test_the_view_is_the_round_as_it_is_before_the_gate():
    federation, seen, records, _ = witnessed()
    assert [view.round.index for view in seen] == [1, 2]
    for view, record in zip(seen, records, strict=True):
        people = federation.participants(record.round)
        assert view.round.client_ids == tuple(person.client_id for person in people)
        assert view.attacks.tolist() == [person.is_malicious for person in people]
        counts = [federation.claim(person) for person in people]
        assert view.round.num_examples.tolist() == counts
        assert torch.equal(view.first, federation.start)
        assert bool(view.round.updates[view.attacks].isnan().all())
        assert bool(view.round.updates[~view.attacks].isfinite().all())
        assert record.attack == {"told": 1}
        assert record.count(Verdict.REJECTED) == 0
    model = predictor(federation.module, federation.layout)
    held = federation.attacker_data.mixed()
    wanted = float(cross_entropy(model(federation.start, held.inputs), held.labels))
    assert seen[0].own_loss(federation.start) == pytest.approx(wanted, rel=1e-6)


@pytest.mark.parametrize("number", range(8))
def test_a_view_hides_what_the_attack_does_not_declare(number):
    """Each of the three by itself; the attackers' own rows and what they hold are always there."""
    shown = Sees(number)
    federation, seen, _, _ = witnessed(shown=shown, name="datadefense")
    for view in seen:
        honest = view.round.updates[~view.attacks]
        assert len(honest)
        if Sees.HONEST_UPDATES in shown:
            assert bool(honest.isfinite().all())
        else:
            assert bool(honest.isnan().all())
        assert (view.rule is not None) == (Sees.RULE in shown)
        assert (view.state is not None) == (view.server is not None) == (Sees.SERVER in shown)
        assert bool(view.attacks.any())
        assert bool(view.stand_ins.isfinite().all())
        assert view.round.num_examples.tolist() == [20] * 8
        assert torch.equal(view.first, federation.start)
        assert math.isfinite(view.own_loss(federation.start))


def test_what_is_hidden_from_the_attackers_is_not_hidden_from_the_defense():
    """Rows are masked in a copy: the model is the same, whatever was shown."""
    models = [witnessed(shown=shown)[3].params for shown in (Sees.NOTHING, EVERYTHING)]
    assert bool(models[0].isfinite().all())
    assert torch.equal(*models)


@dataclass(frozen=True)
class Trustful(Witness):
    """Calls a rule that it did not ask to see."""

    def agree(self, view):
        true_trial(view)


def test_who_calls_a_rule_that_it_does_not_see_is_told_so():
    federation = attacked_by(attack=Trustful([], shown=Sees.NOTHING))
    with pytest.raises(SettingsError, match="must see rule and server"):
        play(federation, "fedavg", 1)


def test_what_was_agreed_on_is_what_counts():
    """The attackers send nothing: the model is the average of the others, and of no change."""
    _, (view, *_), _, progress = witnessed(rounds=1)
    shares = view.round.shares()
    updates = view.round.updates.nan_to_num(0.0)
    expected = view.round.global_params + shares @ updates
    assert torch.allclose(progress.params, expected, atol=1e-6)


def test_who_claims_what_no_gate_passes_does_not_take_part():
    _, seen, records, _ = witnessed(claims=0)
    assert seen == []
    assert all(record.attack == {} for record in records)


def test_stand_ins_are_honest_trainings_of_the_first_attacker():
    federation, (view, *_), _, _ = witnessed()
    attackers = int(view.attacks.sum())
    assert len(view.stand_ins) == (8 - attackers) // 2 > 1
    assert bool(view.stand_ins.isfinite().all())
    assert len({float(row.norm()) for row in view.stand_ins}) == len(view.stand_ins)
    people = federation.participants(1)
    jobs = train_jobs(federation, 1, people)
    extra = stand_in_jobs(federation, jobs)
    assert [job.row for job in extra] == list(range(8, 8 + len(view.stand_ins)))
    assert [job.stand_in for job in extra] == list(range(len(view.stand_ins)))
    assert all(job.person == next(p for p in people if p.is_malicious) for job in extra)
    calm = [job for job in jobs if not job.person.is_malicious]
    assert stand_in_jobs(federation, calm) == []


def test_the_guess_is_a_server_of_the_attackers_own_data():
    federation = attacked_by("rule")
    witness = Witness([])
    play(replace(federation, attack=witness), "fedavg", 1)
    clean, poison = federation.attacker_data.guess
    server = witness.seen[0].guess()
    assert torch.equal(server.defense_set.examples.inputs, clean.join(poison).inputs)
    assert torch.equal(server.clean.inputs, clean.inputs[:10])
    assert server.defense_set.known_clean.sum() == 10
    assert server.seed != federation.seed
    logits = server.logits(federation.start, clean.inputs)
    model = predictor(federation.module, federation.layout)
    assert torch.equal(logits, model(federation.start, clean.inputs))


@dataclass(frozen=True)
class ByLayer(FedAvg):
    """FedAvg that remembers whether it was given a layout; on trial it must be, too."""

    seen: list = dataclasses.field(default_factory=list)

    def combine(self, round):
        self.seen.append(round.layout is not None)
        return FedAvg.combine(self, round)


@pytest.mark.parametrize("knowledge", ["rule", "everything"])
def test_a_rule_on_trial_knows_the_layout(knowledge):
    rule = ByLayer()
    play(attacked_by(knowledge), rule, rounds=1)
    assert len(rule.seen) > 1
    assert all(rule.seen)
