"""How much a defense does, counted and not timed: the same on every machine, however busy."""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor
from torch.utils._python_dispatch import TorchDispatchMode


class Work(TorchDispatchMode):  # type: ignore[no-untyped-call]
    """Count the numbers that torch's operations read and write while this is entered.

    Views are free. What runs outside torch, or in another thread, is not seen.

    >>> with Work() as work:
    ...     _ = torch.ones(10)[:5] + torch.ones(5)
    >>> work.numbers
    30
    """

    numbers: int

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.numbers = 0

    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call the operation and count what went in and what came out."""
        named = dict(kwargs or {})
        result = func(*args, **named)
        if not func.is_view:
            self.numbers += _size(args) + _size(tuple(named.values())) + _size(result)
        return result


def work_of(call: Callable[[], object]) -> int:
    """Return the work of a call, done by one thread."""
    with one_thread(), Work() as work:
        call()
    return int(work.numbers)


@contextmanager
def one_thread() -> Iterator[None]:
    """Let torch compute with one thread meanwhile: in small steps more of them wait on each other.

    A process that trains clients has one too.
    """
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _size(values: object) -> int:
    if isinstance(values, Tensor):
        return values.numel()
    if isinstance(values, tuple | list):
        return sum(_size(value) for value in values)
    return 0
