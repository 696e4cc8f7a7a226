import copy
import pickle
import threading

import pytest
import torch
from tests.small_resnet import small_resnet, stripes

from datadefense import Layout, Round, Server, predictor
from datadefense.core.client_models import of_each_client
from datadefense.kernels import spill


def scene(clients=7):
    module = small_resnet()
    layout = Layout.of_module(module)
    start = layout.flatten(module.state_dict())
    updates = 0.01 * torch.randn(
        clients, layout.dim, generator=torch.Generator().manual_seed(1), dtype=start.dtype
    )
    counts = torch.full((clients,), 5)
    round = Round(1, start, updates, counts, tuple(range(clients)))
    return predictor(module, layout), round, stripes(12, 1).inputs


def logits_of(server, round, inputs):
    def measure(params):
        with torch.no_grad():
            return server.logits(params, inputs)

    return torch.stack(of_each_client(server, round, measure))


@pytest.mark.parametrize("threads", [2, 3, 50])
def test_threads_do_not_change_the_bits(threads):
    predict, round, inputs = scene()
    expected = torch.stack(
        [predict(round.global_params + update, inputs) for update in round.updates]
    )
    assert torch.equal(logits_of(Server(predict, threads=1), round, inputs), expected)
    assert torch.equal(logits_of(Server(predict, threads=threads), round, inputs), expected)


def workers_of(server, round):
    seen = set()
    barrier = threading.Barrier(2, timeout=0.2)

    def measure(params):  # noqa: ARG001 - what counts is who calls
        seen.add(threading.get_ident())
        try:
            barrier.wait()
        except threading.BrokenBarrierError:
            barrier.reset()

    of_each_client(server, round, measure)
    return len(seen)


def test_several_threads_are_at_work_where_the_model_allows_it():
    predict, round, _ = scene(4)
    assert workers_of(Server(predict, threads=2), round) == 2
    assert workers_of(Server(predict, threads=1), round) == 1
    assert workers_of(Server(predict.__call__, threads=2), round) == 1


def test_one_thread_for_a_matrix_in_a_file(monkeypatch):
    predict, round, _ = scene(4)
    monkeypatch.setattr("datadefense.core.client_models.is_spilled", lambda updates: True)
    assert workers_of(Server(predict, threads=2), round) == 1
    assert not spill.is_spilled(round.updates)


def test_an_error_in_a_thread_reaches_the_caller():
    predict, round, _ = scene(6)

    def fails(_params):
        raise FloatingPointError("no")

    with pytest.raises(FloatingPointError, match="no"):
        of_each_client(Server(predict, threads=3), round, fails)


def sent(predict):
    return pickle.loads(pickle.dumps(predict))  # noqa: S301 - as to a worker


@pytest.mark.parametrize("copied", [copy.deepcopy, sent])
def test_a_predictor_can_be_copied_after_it_was_called(copied):
    predict, round, inputs = scene(1)
    expected = predict(round.global_params, inputs)
    assert torch.equal(copied(predict)(round.global_params, inputs), expected)
