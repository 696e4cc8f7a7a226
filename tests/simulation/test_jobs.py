import copy
import dataclasses
from dataclasses import dataclass, field
from itertools import pairwise

import pytest
import torch
from tests.simulation.tiny import clouds, poisoned, tiny_federation

from datadefense import Server
from datadefense.attacks.base import Attack, AttackerData
from datadefense.core.local_training import Trainer
from datadefense.defenses import FedAvg
from datadefense.schedules import FixedFrequency, Participant
from datadefense.simulation.jobs import CountJob, JobResult, SharedBuffers, TrainJob, do_job
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import begin, simulate


@pytest.fixture
def federation():
    return tiny_federation()


@pytest.fixture
def work(federation):
    """A function that does a job, and the board it writes on."""
    board = SharedBuffers.of(federation)
    board.params.copy_(federation.start)
    trainer = Trainer(copy.deepcopy(federation.module), federation.layout)
    return lambda job: do_job(job, federation, board, trainer), board


def train_job(person, row=0):
    attacker = (0, 1) if person.is_malicious else (0, 0)
    return TrainJob(1, row, person, attacker, num_examples=100, has_previous=False)


def test_counts_of_the_parts_add_up(work):
    do, _ = work
    parts = [do(CountJob("ma_percent", start, start + 50)) for start in (0, 50, 100)]
    whole = do(CountJob("ma_percent", 0, 150))
    assert sum(part.count for part in parts) == whole.count
    assert 0 <= do(CountJob("asr_percent", 0, 40)).count <= 40
    assert all(part.seconds > 0 for part in [*parts, whole])


@pytest.mark.parametrize("person", [Participant(3, False), Participant("attacker", True)])
def test_an_update_is_written_into_its_row_and_timed(work, person):
    do, board = work
    answer = do(train_job(person, row=2))
    assert answer.count == 0
    assert answer.seconds > 0
    written = board.updates.abs().sum(1) > 0
    assert written.tolist() == [False, False, True, False, False]
    first = board.updates[2].clone()
    do(train_job(person, row=4))
    assert torch.equal(board.updates[4], first)


def test_an_answer_does_not_change():
    with pytest.raises(dataclasses.FrozenInstanceError):
        JobResult(1, 0.5).count = 2


def test_an_attacker_needs_an_attack():
    calm = tiny_federation(attack=None, attacker_data=None)
    board, trainer = SharedBuffers.of(calm), Trainer(calm.module, calm.layout)
    with pytest.raises(ValueError, match="the federation has no attack"):
        do_job(train_job(Participant("attacker", True)), calm, board, trainer)


@dataclass(frozen=True)
class Spy(Attack):
    """Sends nothing, and remembers what it was to plant."""

    seen: list = field(default_factory=list)

    def update(self, trainer, attacker_data, context):
        self.seen.append(attacker_data.poison)
        return torch.zeros_like(context.start)


def planted(**schedule):
    """Which backdoor each attack of ten rounds plants, the first or the second."""
    spy, attacker_data = Spy(), AttackerData(clouds(6, 1), poisoned(5, 2), other=poisoned(5, 3))
    federation = tiny_federation(
        attack=spy, attacker_data=attacker_data, schedule=FixedFrequency(**schedule)
    )
    with Pool(federation) as pool:
        start = begin(federation, FedAvg(), Server())
        for _ in simulate(federation, FedAvg(), Server(), pool, progress=start, rounds=10):
            pass
    assert all(poison in (attacker_data.poison, attacker_data.other) for poison in spy.seen)
    return [1 if poison is attacker_data.poison else 2 for poison in spy.seen]


@pytest.mark.parametrize("period", [1, 2, 3])
def test_every_other_attack_plants_the_other_backdoor(period):
    turns = planted(period=period)
    assert len(turns) == -(-10 // period)
    assert all(one != two for one, two in pairwise(turns))


def test_attackers_of_one_round_take_turns():
    turns = planted(period=2, attackers=2)
    assert [{one, two} for one, two in zip(turns[::2], turns[1::2], strict=True)] == [{1, 2}] * 5
