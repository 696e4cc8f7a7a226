"""An attack that remembers: what it is told, and the same bits with workers and after a stop."""

from dataclasses import dataclass

import pytest
import torch
from tests.attacks.remembering import Counting, Memory, Remembering, same
from tests.runs.quick import quick
from tests.simulation.played import play, without_times
from tests.simulation.tiny import tiny_federation

from datadefense import Server, load_state, save_state
from datadefense.defenses import FedAvg
from datadefense.runs.run import resume, start
from datadefense.schedules import FixedFrequency
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import begin, train_jobs

KINDS = [Remembering, Counting]
SLOTS = FixedFrequency(period=2, attackers=2)


def attacked_by(kind=Remembering, schedule=SLOTS):
    return tiny_federation(attack=kind(epochs=1, learning_rate=0.05), schedule=schedule)


@dataclass(frozen=True)
class Forgetful(Remembering):
    """The same attack, but it is as if each round were the first."""

    def remember(self, state, sent, context):
        return state


def test_what_it_remembers_makes_a_difference():
    """Else the same bits would say nothing of the memory."""
    kinds = (Remembering, Forgetful)
    first, later = ([play(attacked_by(kind), rounds=n)[1].params for kind in kinds] for n in (2, 3))
    assert torch.equal(*first)
    assert not torch.equal(*later)


def test_it_is_told_of_attacked_rounds_and_of_no_others():
    federation, seen, progress = attacked_by(), [], None
    for rounds in range(1, 6):
        _, progress = play(federation, rounds=rounds, progress=progress)
        seen.append(progress.attack_state.rounds)
    assert seen == [(1,), (1,), (1, 3), (1, 3), (1, 3, 5)]


@dataclass(frozen=True)
class Witness(Remembering):
    """Remembers, without a copy, whatever it is shown."""

    def init(self, start):
        return ()

    def remember(self, state, sent, context):
        return (*state, (sent, context.start, context.previous, context.first))

    def finish(self, update, trainer, data, context):
        return update


def test_what_it_keeps_is_what_was_sent_and_the_models_of_the_round():
    federation = attacked_by(Witness, FixedFrequency(period=1, attackers=2))
    models, progress = [federation.start], None
    for rounds in (1, 2, 3):
        _, progress = play(federation, rounds=rounds, progress=progress)
        models.append(progress.params.clone())
    assert len(progress.attack_state) == 3
    for index, (sent, model, previous, first) in enumerate(progress.attack_state):
        assert sent.shape == (2, federation.layout.dim)
        assert torch.equal(model, models[index])
        assert previous is None if index == 0 else torch.equal(previous, models[index - 1])
        assert torch.equal(first, federation.start)
    one, other = progress.attack_state[0][0]
    assert not torch.equal(one, other)


def test_only_attackers_get_the_memory():
    federation = attacked_by()
    memory = begin(federation, FedAvg(), Server()).attack_state
    assert isinstance(memory, Memory)
    jobs = train_jobs(federation, 1, federation.participants(1), memory)
    assert [job.state is memory for job in jobs] == [job.person.is_malicious for job in jobs]
    assert [job.state is None for job in jobs] == [not job.person.is_malicious for job in jobs]


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_with_two_workers(kind):
    federation = attacked_by(kind)
    records, progress = play(federation, rounds=5)
    others, other = play(federation, rounds=5, workers=2)
    assert torch.equal(other.params, progress.params)
    assert same(other.attack_state, progress.attack_state)
    assert without_times(others) == without_times(records)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("stop", [1, 2, 3])
def test_the_same_bits_after_a_stop(tmp_path, kind, stop):
    federation = attacked_by(kind)
    records, whole = play(federation, rounds=5)
    first, middle = play(federation, rounds=stop)
    save_state(tmp_path / "progress", middle)
    fresh = begin(federation, FedAvg(), Server())
    loaded = load_state(tmp_path / "progress", like=fresh)
    assert same(loaded.attack_state, middle.attack_state)
    second, end = play(federation, rounds=5, progress=loaded)
    assert torch.equal(end.params, whole.params)
    assert same(end.attack_state, whole.attack_state)
    assert without_times(first + second) == without_times(records)


def test_no_attack_no_memory():
    assert play(tiny_federation(), rounds=2)[1].attack_state is None


@pytest.mark.parametrize("kind", KINDS)
def test_a_run_that_was_interrupted_goes_on_to_the_same_bits(tmp_path, kind):
    """From its folder alone, where the attack is named by its module, and with workers then."""
    pytest.importorskip("mlxtend")
    chosen = quick(
        attack=f"{kind.__module__}:{kind.__qualname__}",
        rounds=4,
        attackers=2,
        clients_per_round=4,
        checkpoint_every=1,
    )
    with start(chosen, tmp_path / "whole") as whole, Pool(whole.federation) as pool:
        list(whole.rounds(pool))
    with start(chosen, tmp_path / "cut") as cut, Pool(cut.federation) as pool:
        for record in cut.rounds(pool):
            if record.round == 2:
                break
        kept = cut.progress.attack_state
    with resume(tmp_path / "cut") as again:
        assert again.experiment == cut.experiment
        assert again.progress.round == 2
        assert same(again.progress.attack_state, kept)
        with Pool(again.federation, 2) as pool:
            list(again.rounds(pool))
    assert torch.equal(again.progress.params, whole.progress.params)
    assert same(again.progress.attack_state, whole.progress.attack_state)
    assert without_times(again.records) == without_times(whole.records)
