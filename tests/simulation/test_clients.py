import copy
import dataclasses

import pytest
import torch
from tests.simulation.tiny import tiny_federation

from datadefense.attacks.schedule import Participant
from datadefense.simulation.clients import Answer, Board, CountJob, TrainJob, do_job
from datadefense.training import Bench


@pytest.fixture
def federation():
    return tiny_federation()


@pytest.fixture
def work(federation):
    """A function that does a job, and the board it writes on."""
    board = Board.of(federation)
    board.params.copy_(federation.start)
    bench = Bench(copy.deepcopy(federation.module), federation.layout)
    return lambda job: do_job(job, federation, board, bench), board


def train_job(person, row=0):
    attacker = (0, 1) if person.attacks else (0, 0)
    return TrainJob(1, row, person, attacker, num_examples=100, has_previous=False)


def test_counts_of_the_parts_add_up(work):
    do, _ = work
    parts = [do(CountJob(False, start, start + 50)) for start in (0, 50, 100)]
    whole = do(CountJob(False, 0, 150))
    assert sum(part.count for part in parts) == whole.count
    assert 0 <= do(CountJob(True, 0, 40)).count <= 40
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
        Answer(1, 0.5).count = 2


def test_an_attacker_needs_an_attack():
    calm = tiny_federation(attack=None, loot=None)
    board, bench = Board.of(calm), Bench(calm.module, calm.layout)
    with pytest.raises(ValueError, match="the federation has no attack"):
        do_job(train_job(Participant("attacker", True)), calm, board, bench)
