import os
import signal
from dataclasses import replace

import pytest
import torch
from tests.simulation.tiny import tiny_federation

from datadefense import Server, create
from datadefense.attacks.schedule import FixedPool, Never
from datadefense.settings import SettingsError
from datadefense.simulation import pool as pool_module
from datadefense.simulation.pool import Pool, WorkerError
from datadefense.simulation.rounds import begin, evaluate, simulate
from datadefense.simulation.shards import Shards


def play(federation, name="fedavg", rounds=4, workers=0, progress=None, **options):
    defense, server = create(name), Server()
    with Pool(federation, workers) as pool:
        steps = list(
            simulate(
                federation,
                defense,
                server,
                pool,
                progress=progress or begin(federation, defense, server),
                rounds=rounds,
                **options,
            )
        )
    return [record for record, _ in steps], steps[-1][1]


def without_times(records):
    return [replace(record, seconds={}) for record in records]


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
    calm, _ = play(tiny_federation(attack=None, loot=None, schedule=Never()), rounds=5)
    assert attacked[-1].asr_percent > 80
    assert calm[-1].asr_percent < attacked[-1].asr_percent - 40


def test_evaluation_every_so_many_rounds():
    records, _ = play(tiny_federation(), rounds=5, evaluate_every=2)
    assert [record.ma_percent is not None for record in records] == [False, True, False, True, True]


def test_scores_are_shares_of_the_test_sets():
    federation = tiny_federation()
    with Pool(federation) as pool:
        accuracy, success = evaluate(federation, pool, federation.start)
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
    federation = tiny_federation(schedule=FixedPool(6))
    records, _ = play(federation, rounds=4)
    pool = federation.schedule.pool(12, 0)
    assert all(set(record.attackers) == pool & set(record.clients) for record in records)


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
                os.kill(pool._crew[record.round % 2].process.pid, signal.SIGKILL)
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
    with pytest.raises(SettingsError, match="an attack needs loot"):
        tiny_federation(loot=None)
    with pytest.raises(SettingsError, match="there is no attack"):
        tiny_federation(attack=None, loot=None).participants(1)
    assert pool_module.MOST_DEATHS == 3
