"""Nodes as workers: the same bits as ours, jobs that fail elsewhere, and jobs that fail always."""

import dataclasses
import math

import pytest
import torch
from flwr.app import ConfigRecord, Context, Message, MessageType, RecordDict
from flwr.serverapp.strategy import FedAvg
from tests.attacks.remembering import Counting, Remembering
from tests.attacks.remembering import same as same_memory
from tests.flower.fake_grid import FakeGrid, failing, record, reply
from tests.flower.hostile import Hostile
from tests.runs.quick import quick

from datadefense.core.local_training import Trainer
from datadefense.core.storage import StateError
from datadefense.defenses import create
from datadefense.flower import DefendedStrategy
from datadefense.flower.arrays import read_record
from datadefense.flower.engine.grid_pool import MOST_TRIES, GridPool
from datadefense.flower.engine.messages import job_content, read_job, read_update
from datadefense.flower.engine.node import client_app
from datadefense.runs.build import assemble
from datadefense.runs.config import write_toml
from datadefense.simulation.jobs import do_job
from datadefense.simulation.pool import Pool, WorkerError
from datadefense.simulation.rounds import begin, simulate, train_jobs

CONTEXT = Context(1, 1, {}, RecordDict(), {"data": ""})


class JobGrid(FakeGrid):
    """A grid whose messages are jobs."""

    def note(self, message):
        self.asked.append(message)


def no_memory(config, params):
    """What an attack remembers that remembers nothing."""


def working(message):
    return client_app(message, CONTEXT)


@pytest.fixture(scope="module")
def setting():
    configured = quick(defense="datadefense", rounds=3, clients_per_round=7)
    return configured, *assemble(configured)


def rounds_of(setting, workers, rounds=3):
    configured, federation, server = setting
    defense = configured.defense
    progress = begin(federation, defense, server)
    return list(
        simulate(
            federation,
            defense,
            server,
            workers,
            progress=progress,
            rounds=rounds,
            evaluate_every=3,
        )
    )


@pytest.fixture(scope="module")
def builtin(setting):
    return rounds_of(setting, Pool(setting[1]))


def pool_of(setting, nodes):
    return GridPool(setting[1], JobGrid(nodes), write_toml(setting[0]), seconds=0)


def same(found, expected):
    for (one, progress), (other, wanted) in zip(found, expected, strict=True):
        assert torch.equal(progress.params, wanted.params)
        assert dataclasses.replace(one, seconds={}) == dataclasses.replace(other, seconds={})


def test_nodes_give_the_very_bits_of_our_own_workers(setting, builtin):
    pool = pool_of(setting, dict.fromkeys(range(3), working))
    same(rounds_of(setting, pool), builtin)
    assert pool.peak_memory_mb() is None


@pytest.mark.parametrize("knowledge", ["rule", "everything"])
def test_attackers_who_call_the_defense_do_so_with_nodes_too(knowledge):
    """The nodes train, stand-ins included; the defense is called where it is, on the server."""
    chosen = quick(
        attack="oracle", knowledge=knowledge, defense="multi-krum", clients_per_round=6, attackers=2
    )
    case = (chosen, *assemble(chosen))
    expected = rounds_of(case, Pool(case[1]), 1)
    pool = pool_of(case, dict.fromkeys(range(3), working))
    same(rounds_of(case, pool, 1), expected)
    assert "evasion_budget" in expected[0][0].attack


@pytest.mark.parametrize("kind", [Remembering, Counting])
def test_what_an_attack_remembers_goes_with_its_jobs(kind):
    """To nodes that make the attack anew of its name: the same bits as with workers of ours."""
    chosen = quick(
        attack=f"{kind.__module__}:{kind.__qualname__}",
        rounds=3,
        clients_per_round=4,
        period=1,
        attackers=2,
    )
    case = (chosen, *assemble(chosen))
    expected = rounds_of(case, Pool(case[1]), 3)
    grid = JobGrid(dict.fromkeys(range(3), working))
    found = rounds_of(case, GridPool(case[1], grid, write_toml(chosen), seconds=0), 3)
    same(found, expected)
    for (_, progress), (_, wanted) in zip(found, expected, strict=True):
        assert same_memory(progress.attack_state, wanted.attack_state)
    began = [begin(case[1], chosen.defense, case[2]), *(progress for _, progress in found)]
    for message in grid.asked:
        job, _, _ = read_job(message, lambda _, params: kind().init(params))
        memory = began[job.index - 1].attack_state
        if not job.person.is_malicious or memory is None:
            assert job.state is None
        elif job.index == 1:
            assert job.state.rounds == ()
        else:
            assert same_memory(job.state, memory)


def test_a_memory_of_another_kind_is_refused(setting):
    _, federation, _ = setting
    people = federation.participants(1)
    jobs = train_jobs(federation, 1, people, (torch.zeros(3), 7))
    attacker = next(job for job in jobs if job.person.is_malicious)
    content = job_content(attacker, Pool(federation).board, "")
    message = Message(content, dst_node_id=1, message_type=MessageType.TRAIN)
    job, _, _ = read_job(message, lambda *_: (torch.ones(3), 1))
    assert job.state[0].tolist() == [0, 0, 0]
    for like in ((torch.zeros(2), 7), {"kept": 7}, 7):
        with pytest.raises(StateError, match="the state"):
            read_job(message, lambda *_, like=like: like)


@pytest.mark.parametrize("bad", [None, failing(), lambda m: reply(m, {"update": torch.ones(2)})])
def test_what_a_node_does_not_answer_goes_to_another(setting, builtin, bad):
    pool = pool_of(setting, {1: working, 2: bad, 3: working})
    [(_, progress)] = rounds_of(setting, pool, 1)
    assert torch.equal(progress.params, builtin[0][1].params)


@pytest.mark.parametrize("seed", range(3))
def test_whatever_one_node_replies_the_others_do_its_jobs(setting, builtin, seed):
    hostile = Hostile(seed)

    def node(message):
        message.content["config"] = ConfigRecord({"server-round": 1})
        return hostile.reply(message)

    pool = pool_of(setting, {1: working, 2: node, 3: working})
    [(_, progress)] = rounds_of(setting, pool, 1)
    assert torch.equal(progress.params, builtin[0][1].params)


def test_a_job_that_every_node_fails_ends_the_run_and_says_whose(setting):
    pool = pool_of(setting, {1: failing(), 2: failing()})
    with pytest.raises(WorkerError, match=f"{MOST_TRIES} nodes gave no update for clients"):
        rounds_of(setting, pool, 1)


def test_a_job_comes_back_from_its_message(setting):
    federation = setting[1]
    grid = JobGrid({1: working})
    rounds_of(setting, GridPool(federation, grid, write_toml(setting[0])), 2)
    jobs = [read_job(message, no_memory)[0] for message in grid.asked]
    people = [person for index in (1, 2) for person in federation.participants(index)]
    assert {(job.index, job.person) for job in jobs} >= {(2, person) for person in people[7:]}
    attacker = next(job for job in jobs if job.person.is_malicious)
    assert attacker.attacker == (0, 1)
    assert all(job.has_previous is (job.person.is_malicious and job.index > 1) for job in jobs)


@pytest.mark.parametrize(
    ("sends", "defense"),
    [
        ("updates", "fedavg"),
        ("updates", "multi-krum"),
        ("updates", "datadefense"),
        ("models", "datadefense"),
    ],
)
def test_the_strategy_makes_the_models_that_our_simulator_makes(setting, builtin, sends, defense):
    """To the bit if nodes send updates; else apart by the rounding of a sum and a difference."""
    configured, federation, server = setting
    other = dataclasses.replace(configured, defense=create(defense))
    same_run = other == configured
    expected = builtin if same_run else rounds_of((other, federation, server), Pool(federation))
    trainer, pool, seen = Trainer(federation.module, federation.layout), Pool(federation), {}

    def slot(row):
        """Node k is whoever has slot k in the round."""

        def node(message):
            index = message.content["config"]["server-round"]
            params = federation.layout.flatten(read_record(message.content["arrays"]))
            seen[index] = params
            people = federation.participants(index)
            pool.board.previous.copy_(seen.get(index - 1, params))
            pool.board.params.copy_(params)
            job = train_jobs(federation, index, people)[row]
            do_job(job, federation, pool.board, trainer)
            sent = pool.board.updates[row] + (params if sends == "models" else 0)
            model = federation.layout.unflatten(sent)
            count = federation.claim(people[row])
            return reply(message, {k: v.numpy() for k, v in model.items()}, count)

        return node

    grid = FakeGrid({row + 1: slot(row) for row in range(federation.clients_per_round)})
    strategy = DefendedStrategy(
        defense,
        inner=FedAvg(fraction_evaluate=0.0),
        model=federation.module,
        defense_set=server.defense_set,
        seed=server.seed,
        sends=sends,
        wait_seconds=0,
    )
    start = federation.layout.unflatten(federation.start)
    result = strategy.start(grid, record({k: v.numpy() for k, v in start.items()}), 3)
    seen[4] = federation.layout.flatten(read_record(result.arrays))
    for number, (_, progress) in enumerate(expected, start=2):
        apart = float((seen[number] - progress.params).abs().max())
        assert apart <= (1e-6 if sends == "models" else 0)


@pytest.fixture
def asked(setting):
    """A message of a job, and the board that its update goes to."""
    federation = setting[1]
    board = Pool(federation).board
    job = train_jobs(federation, 1, federation.participants(1))[0]
    message = Message(
        job_content(job, board, write_toml(setting[0])),
        dst_node_id=1,
        message_type=MessageType.TRAIN,
    )
    message.metadata.__dict__["_message_id"] = "1"
    return message, board


@pytest.mark.parametrize("seconds", [math.nan, math.inf, -1.0, 2**63, [1.0], "none"])
def test_seconds_that_cannot_be_are_taken_for_0(asked, seconds):
    message, board = asked
    update = torch.full_like(board.updates[0], 0.5)
    told = {} if seconds == "none" else {"seconds": seconds}
    answer = reply(message, {"update": update.numpy()}, **told)
    assert read_update(answer, board.updates[0]).seconds == 0.0
    assert torch.equal(board.updates[0], update)


def test_a_reply_of_another_form_is_refused(asked):
    message, board = asked
    for bad in (reply(message, {"update": torch.ones(3)}), failing()(message)):
        with pytest.raises(ValueError, match="the update is|error 2"):
            read_update(bad, board.updates[0])
