import threading
from concurrent.futures import Future, ThreadPoolExecutor

import pytest
import torch

from datadefense.defenses.bulyan import mean_around_median
from datadefense.kernels import distances, networks, sums, workers


@pytest.fixture(params=[2, 3])
def threads(request):
    torch.set_num_threads(request.param)
    yield request.param
    torch.set_num_threads(1)


def drawn(clients=9, dim=300_001):
    return torch.randn(clients, dim, generator=torch.Generator().manual_seed(0))


def near_clones():
    updates = drawn(dim=140_000)
    updates[3:] = updates[3] + 1e-6 * updates[3:]
    return updates


KERNELS = {
    "median": networks.median,
    "trimmed mean": lambda u: networks.trimmed_mean(u, 2),
    "bulyan": lambda u: mean_around_median(u, list(range(9)), 5),
    "distances": distances.squared_distances,
    "distances of near-clones": lambda u: distances.squared_distances(near_clones()),
    "dots": lambda u: sums.dots(u, u[0]),
}


@pytest.mark.parametrize("kernel", KERNELS)
def test_no_operation_within_a_part_is_divided_and_the_bits_are_those_of_one_thread(
    kernel, threads, monkeypatch
):
    """Divided, each would end with threads that wait for each other: for ever, if cores are few."""
    rows, seen = drawn(), []
    torch.set_num_threads(1)
    alone = KERNELS[kernel](rows)
    torch.set_num_threads(threads)
    original = workers.column_parts

    def watched(*arguments):
        for part in original(*arguments):
            seen.append((threading.get_ident(), torch.get_num_threads()))
            yield part

    monkeypatch.setattr(workers, "column_parts", watched)
    assert torch.equal(KERNELS[kernel](rows), alone)
    assert seen
    assert {number for _, number in seen} == {1}
    assert torch.get_num_threads() == threads


def test_all_workers_take_part(threads):
    meeting = threading.Barrier(threads, timeout=30)
    workers.for_each_part(drawn(dim=1000), 1000, 100, lambda parts: (meeting.wait(), list(parts)))


@pytest.mark.usefixtures("threads")
def test_parts_are_added_in_their_order_whoever_is_first():
    """A sum of floating point numbers has other bits in another order."""
    values = 10 ** (8 * torch.rand(100, generator=torch.Generator().manual_seed(0)))
    second = threading.Event()

    def slow_at_first(part, _):
        if part.start == 0:
            second.wait(30)
        second.set()
        return values[part.start // 10]

    total, expected = torch.zeros(()), torch.zeros(())
    workers.sum_over_parts(total, drawn(dim=1000), 1000, 10, slow_at_first)
    for value in values:
        expected += value
    assert torch.equal(total, expected)


def test_results_that_wait_for_an_earlier_part_are_few(threads):
    """Each is n x n numbers: were they all kept, a late thread would cost the memory."""
    total, done, most, lock = torch.zeros(()), 0, 0, threading.Lock()

    def late_at_first(part, _):
        nonlocal done, most
        if part.start == 0:
            threading.Event().wait(0.5)
        with lock:
            done += 1
            most = max(most, done - int(total))
        return torch.ones(())

    workers.sum_over_parts(total, drawn(dim=10_000), 10_000, 10, late_at_first)
    assert total == done == 1000
    assert threads <= most <= (workers.AHEAD + 1) * threads


@pytest.mark.parametrize("at", [0, 500])
def test_an_error_in_a_part_is_raised_and_nobody_waits_for_it(at, threads):
    def measure(part, _):
        if part.start == at:
            raise MemoryError("no more")
        return torch.zeros(())

    total = torch.zeros(())
    with pytest.raises(MemoryError, match="no more"):
        workers.sum_over_parts(total, drawn(dim=1000), 1000, 5, measure)
    assert torch.get_num_threads() == threads


@pytest.mark.usefixtures("threads")
@pytest.mark.parametrize("mode", [torch.no_grad, torch.inference_mode])
def test_the_callers_mode_is_that_of_all_threads(mode):
    rows = drawn().requires_grad_()
    with mode():
        assert torch.equal(networks.median(rows), rows.median(0).values)
        assert distances.squared_distances(rows).isfinite().all()


def test_one_thread_starts_no_other():
    before = threading.active_count()
    found = []
    workers.for_each_part(
        drawn(), 300_000, 1000, lambda parts: found.append((threading.active_count(), *parts))
    )
    assert found[0][0] <= before  # a thread of another test may have ended meanwhile
    assert len(found) == 1


def test_a_thread_that_never_had_a_core_is_not_waited_for(monkeypatch):
    """On a busy machine that wait would be longer than the work."""
    torch.set_num_threads(2)
    begun = []

    class Late(ThreadPoolExecutor):
        def submit(self, call):
            begun.append(future := Future())
            return future

    monkeypatch.setattr(workers, "ThreadPoolExecutor", Late)
    try:
        assert torch.equal(networks.median(drawn()), drawn().median(0).values)
        assert [future.cancelled() for future in begun] == [True]
    finally:
        torch.set_num_threads(1)
