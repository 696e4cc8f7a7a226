import math
import os
import signal
import weakref
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import pytest
import torch
from tests.simulation.played import play, without_times
from tests.simulation.tiny import tiny_federation

from datadefense import Aggregate, Defense, Server, create, load_state, save_state
from datadefense.attacks.pgd import Pgd, PgdReplacement
from datadefense.core.outcomes import Verdict
from datadefense.core.settings import SettingsError
from datadefense.schedules import FixedFrequency, FixedPool, Never
from datadefense.simulation import pool as pool_module
from datadefense.simulation.pool import Pool, WorkerError
from datadefense.simulation.rounds import begin, evaluate, simulate
from datadefense.simulation.shards import Shards


@pytest.mark.parametrize("name", ["fedavg", "sparsefed", "krum"])
def test_the_same_bits_for_any_number_of_workers(name):
    federation = tiny_federation()
    records, progress = play(federation, name, workers=0)
    for workers in (1, 3):
        others, other = play(federation, name, workers=workers)
        assert torch.equal(other.params, progress.params)
        assert without_times(others) == without_times(records)


def test_stopping_and_going_on_changes_nothing():
    federation = tiny_federation()
    records, whole = play(federation, "sparsefed", rounds=6)
    first, middle = play(federation, "sparsefed", rounds=3)
    second, end = play(federation, "sparsefed", rounds=6, progress=middle)
    assert torch.equal(end.params, whole.params)
    assert torch.equal(end.state.error, whole.state.error)
    assert without_times(first + second) == without_times(records)


def test_the_truth_about_attackers_is_recorded():
    records, _ = play(tiny_federation(), rounds=4)
    assert [bool(record.attackers) for record in records] == [True, False, True, False]
    for record in records:
        assert len(record.clients) == 5
        assert len(record.weights) == 5
        assert set(record.attackers) <= set(record.clients)
        assert sum(record.weights) == pytest.approx(1)
        assert set(record.seconds) == {"training", "attack", "defense", "evaluation"}


@pytest.mark.parametrize("workers", [0, 2])
def test_the_attackers_own_time_is_a_part_of_training(workers):
    records, _ = play(tiny_federation(), rounds=2, workers=workers)
    attacked, calm = (record.seconds for record in records)
    assert 0 < attacked["attack"] <= attacked["training"]
    assert calm["attack"] == 0


def test_the_backdoor_goes_in_undefended_and_stays_out_without_an_attack():
    attacked, _ = play(tiny_federation(), rounds=5)
    calm, _ = play(tiny_federation(attack=None, attacker_data=None, schedule=Never()), rounds=5)
    assert attacked[-1].asr_percent > 80
    assert calm[-1].asr_percent < attacked[-1].asr_percent - 40


def test_evaluation_every_so_many_rounds():
    records, _ = play(tiny_federation(), rounds=5, evaluate_every=2)
    assert [record.ma_percent is not None for record in records] == [False, True, False, True, True]


def test_scores_are_shares_of_the_test_sets():
    federation = tiny_federation()
    with Pool(federation) as pool:
        accuracy, success = evaluate(federation, pool, federation.start).values()
    module = federation.module.eval()
    with torch.no_grad():
        for tensor, (name, _) in zip(
            federation.layout.unflatten(federation.start).values(),
            module.named_parameters(),
            strict=True,
        ):
            module.get_parameter(name).copy_(tensor)
        guesses = module(federation.test.inputs).argmax(1)
        flipped = module(federation.backdoor_test.inputs).argmax(1)
    assert accuracy == pytest.approx(
        100 * float((guesses == federation.test.labels).float().mean())
    )
    assert success == pytest.approx(100 * float((flipped == 0).float().mean()))


def test_the_honest_path_does_not_know_the_defense():
    """The first round's updates are the same whatever defense runs."""
    federation = tiny_federation()
    rows = []
    for name in ("fedavg", "median"):
        defense, server = create(name), Server()
        with Pool(federation) as pool:
            progress = begin(federation, defense, server)
            next(simulate(federation, defense, server, pool, progress=progress, rounds=1))
            rows.append(pool.board.updates.clone())
    assert torch.equal(*rows)


def test_a_pool_of_malicious_clients():
    federation = tiny_federation(schedule=FixedPool(share=0.5))
    records, _ = play(federation, rounds=4)
    pool = federation.schedule.malicious(1, 12, 0)
    assert all(set(record.attackers) == pool & set(record.clients) for record in records)


@dataclass(frozen=True)
class Liar(Pgd):
    """Claims what it likes; an exception is raised."""

    says: Any = 0

    def num_examples(self, data):
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@dataclass(frozen=True)
class ReplacingLiar(PgdReplacement):
    """Scales by what it claims."""

    says: Any = 0
    num_examples = Liar.num_examples


CLAIMS = (0, -5, 1e30, 10**30, 10**5000, math.nan, None, True, "many", RuntimeError("uncounted"))


@pytest.mark.parametrize("kind", [Liar, ReplacingLiar])
@pytest.mark.parametrize("says", CLAIMS, ids=lambda says: f"{type(says).__name__}")
def test_an_attackers_claim_is_judged_by_the_gate_and_ends_no_run(says, kind):
    records, progress = play(tiny_federation(attack=kind(epochs=1, says=says)), rounds=3)
    assert bool(progress.params.isfinite().all())
    for record in records[::2]:
        (attacker,) = record.attackers
        (rejected,) = (one for one in record.outcomes if one.verdict is Verdict.REJECTED)
        assert rejected.client == attacker
        assert "num_examples must be" in rejected.reason.text or says is None
        assert attacker not in record.clients
        assert len(record.clients) == len(record.weights) == 4
    assert records[1].count(Verdict.REJECTED) == 0


@pytest.mark.parametrize("workers", [0, 2])
def test_a_round_of_liars_leaves_the_model_as_it_is(workers):
    liar = ReplacingLiar(epochs=1, says=0)
    federation = tiny_federation(attack=liar, schedule=FixedFrequency(period=1, attackers=5))
    (record,), progress = play(federation, rounds=1, workers=workers)
    assert record.report["held"] == "no update was admitted"
    assert torch.equal(progress.params, federation.start)


@dataclass(frozen=True)
class Hoard:
    """The matrices of the last three rounds as they were handed out, and true copies of them."""

    handed: tuple = ()
    copies: tuple = ()


@dataclass(frozen=True)
class Hoarder(Defense[Hoard]):
    """Averages, and keeps what it was given without a copy, whole or row by row."""

    name: ClassVar[str] = "hoarder"

    def init(self, server, params):
        return Hoard()

    def aggregate(self, state, round, server):
        kept = (round.updates, *round.updates)[round.index % 2 :]
        copies = tuple(tensor.clone() for tensor in kept)
        hoard = Hoard((*state.handed, kept)[-3:], (*state.copies, copies)[-3:])
        return Aggregate(round.global_params + round.updates.mean(0), hoard)


@pytest.mark.parametrize("workers", [0, 2])
def test_what_a_defense_keeps_of_a_round_stays_as_it_was(workers, tmp_path):
    """Through the rounds that follow, and as it was also in a run that goes on from a file."""
    federation = tiny_federation()
    _, progress = play(federation, Hoarder(), rounds=5, workers=workers)
    hoard = progress.state
    assert len(hoard.handed) == 3
    for handed, copies in zip(hoard.handed, hoard.copies, strict=True):
        assert all(torch.equal(one, other) for one, other in zip(handed, copies, strict=True))
    _, middle = play(federation, Hoarder(), rounds=4, workers=workers)
    save_state(tmp_path / "state", middle.state)
    loaded = replace(middle, state=load_state(tmp_path / "state", like=middle.state))
    _, resumed = play(federation, Hoarder(), rounds=5, workers=workers, progress=loaded)
    for one, other in zip(resumed.state.handed, hoard.handed, strict=True):
        assert all(torch.equal(*pair) for pair in zip(one, other, strict=True))


def test_a_matrix_that_nobody_keeps_is_gone_with_its_round():
    """Else two of them, which are large, would be there while the next one is made."""
    seen, federation = [], tiny_federation()

    class Passing(Hoarder):
        def aggregate(self, state, round, server):
            seen.append(weakref.ref(round.updates))
            return replace(super().aggregate(state, round, server), state=state)

    with Pool(federation) as pool:
        progress = begin(federation, Passing(), Server())
        for record, _ in simulate(
            federation, Passing(), Server(), pool, progress=progress, rounds=3
        ):
            assert [matrix() for matrix in seen] == [None] * record.round


def test_a_worker_that_dies_is_replaced(datadefense_log):
    federation = tiny_federation()
    _, expected = play(federation, rounds=3)
    defense, server = create("fedavg"), Server()
    with Pool(federation, 2) as pool:
        progress = begin(federation, defense, server)
        steps = simulate(federation, defense, server, pool, progress=progress, rounds=3)
        for record, after in steps:
            progress = after
            if record.round < 3:
                os.kill(pool._processes[record.round % 2].process.pid, signal.SIGKILL)
    assert torch.equal(progress.params, expected.params)
    assert "a worker died (exit code -9)" in datadefense_log.text


def test_a_job_that_kills_every_worker_is_an_error():
    federation = tiny_federation(module=Deadly())
    federation = replace(federation, layout=federation.layout)
    with Pool(federation, 1) as pool, pytest.raises(WorkerError, match="3 workers died"):
        evaluate(federation, pool, federation.start)


def test_a_job_that_raises_is_an_error_with_its_reason():
    federation = tiny_federation(module=Broken())
    with (
        Pool(federation, 1) as pool,
        pytest.raises(WorkerError, match="RuntimeError: out of order"),
    ):
        evaluate(federation, pool, federation.start)


class Broken(torch.nn.Sequential):
    def __init__(self):
        super().__init__(
            torch.nn.Linear(5, 6), torch.nn.ReLU(), torch.nn.Dropout(), torch.nn.Linear(6, 3)
        )

    def forward(self, inputs):
        raise RuntimeError("out of order")


class Deadly(Broken):
    def forward(self, inputs):
        os.kill(os.getpid(), signal.SIGKILL)


def test_shards():
    shards = Shards.of([torch.tensor([3, 1]), torch.tensor([0]), torch.tensor([2, 4, 5])])
    assert len(shards) == 3
    assert shards[2].tolist() == [2, 4, 5]
    assert [shards.size(client) for client in range(3)] == [2, 1, 3]
    with pytest.raises(IndexError, match="client must be in 0..2, got 3"):
        shards[3]


def test_federations_that_cannot_be():
    with pytest.raises(
        SettingsError, match="clients_per_round must be in 1..clients, got 13 of 12"
    ):
        tiny_federation(clients_per_round=13)
    with pytest.raises(SettingsError, match="attack and attacker_data must be given together"):
        tiny_federation(attacker_data=None)
    with pytest.raises(SettingsError, match="there is no attack"):
        tiny_federation(attack=None, attacker_data=None).participants(1)
    assert pool_module.MOST_DEATHS == 3
