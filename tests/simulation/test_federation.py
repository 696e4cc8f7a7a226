"""What a federation costs: by examples and slots, not by clients."""

import time
from multiprocessing.reduction import ForkingPickler

import pytest
import torch
from tests.simulation.tiny import clouds, tiny_federation

from datadefense.core.rng import generator
from datadefense.data.partition import dirichlet
from datadefense.simulation.jobs import SharedBuffers
from datadefense.simulation.shards import Shards

EXAMPLES = 60_000


def many_clients(clients, train):
    parts = dirichlet(train.labels, clients, 0.05, generator(0, "partition"))
    return tiny_federation(train=train, shards=Shards.of(parts), clients_per_round=30)


def size(*tensors):
    return sum(tensor.untyped_storage().nbytes() for tensor in tensors)


@pytest.fixture(scope="module")
def federations():
    train = clouds(EXAMPLES, 1)
    started = time.perf_counter()
    made = {clients: many_clients(clients, train) for clients in (200, 3383)}
    assert time.perf_counter() - started < 5  # 0.04 s where it was written
    return made


def test_shards_cost_a_number_an_example_and_one_a_client(federations):
    for clients, federation in federations.items():
        assert len(federation.shards) == clients
        held = size(federation.shards.index, federation.shards.cuts)
        assert held == 8 * (EXAMPLES + clients + 1)


def test_a_round_costs_its_slots(federations):
    boards = [SharedBuffers.of(federation) for federation in federations.values()]
    dim = next(iter(federations.values())).layout.dim
    for board in boards:
        assert size(board.params, board.previous, board.updates) == 4 * dim * (30 + 2)


def test_a_worker_is_sent_handles_however_many_clients_there_are(federations):
    """Data and board go by shared memory; only their addresses are pickled."""
    few, many = (len(ForkingPickler.dumps(federation)) for federation in federations.values())
    assert many == pytest.approx(few, abs=200)
    assert many < 20_000 < size(federations[3383].train.inputs)


def test_clients_are_drawn_from_all_of_them(federations):
    seen = {
        person.client_id
        for index in range(1, 200)
        for person in federations[3383].participants(index)
        if not person.is_malicious
    }
    assert len(seen) > 2500
    assert all(torch.is_tensor(federations[3383].shards[client]) for client in seen)
