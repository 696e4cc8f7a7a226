"""Which precision and memory format suit a model on this processor: measured once, and kept."""

import copy
import hashlib
import json
import logging
import platform
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from time import perf_counter
from typing import Any

import torch
from torch import nn

from datadefense.core.compute import Compute, MemoryFormat, Precision
from datadefense.core.examples import Examples
from datadefense.core.json_file import read_json, to_json
from datadefense.core.local_training import Sgd, Trainer
from datadefense.core.predictor import Layout, predictor
from datadefense.core.round_files import FileError
from datadefense.core.storage import write_text
from datadefense.runs.parts import ComputeSettings

logger = logging.getLogger(__name__)
PRECISIONS: tuple[Precision, ...] = ("float32", "bf16")
FORMATS: tuple[MemoryFormat, ...] = ("contiguous", "channels_last")
GAIN = 0.95
"""Share of the usual way's time that another way may take at most, to be chosen in its place.

So that two ways that are about as fast do not change places by chance."""
TURNS = 5
"""How often each way is timed, in turns; its least time counts."""
MOST_EXAMPLES = 100
"""Examples of the forward pass that is timed."""


@dataclass(frozen=True, slots=True, eq=False)
class Timed:
    """What is timed: a step of the clients' training, and a forward pass of the server."""

    module: nn.Module
    examples: Examples
    training: Sgd

    def step(self, compute: Compute) -> Callable[[], None]:
        """Return one step of training, on a module of its own."""
        layout = Layout.of_module(self.module)
        trainer = Trainer(copy.deepcopy(self.module), layout, compute=compute)
        once = replace(self.training, epochs=1)
        batch = self._first(self.training.batch_size)
        draw = torch.Generator()
        return lambda: trainer.train(once, batch, draw)

    def forward(self, compute: Compute) -> Callable[[], None]:
        """Return one forward pass."""
        layout = Layout.of_module(self.module)
        predict, some = predictor(self.module, layout, compute), self._first(MOST_EXAMPLES)
        params = layout.flatten(self.module.state_dict())

        def call() -> None:
            with torch.no_grad():
                predict(params, some.inputs)

        return call

    def _first(self, count: int) -> Examples:
        return self.examples.take(torch.arange(min(count, len(self.examples))))


def chosen_compute(wanted: ComputeSettings, timed: Timed, cache: Path) -> tuple[Compute, Compute]:
    """Return how clients and the server compute: as wanted; where that is open, what is faster.

    A run that was begun has chosen already and keeps to that, whatever processor it goes on with;
    on another one a warning says that its last bits will differ.
    """
    if wanted.processor not in (None, here := processor()):
        logger.warning(
            "this run began on %s and goes on on %s: figures may differ in their last digits",
            wanted.processor,
            here,
        )
    return (
        _chosen(wanted.training_precision, wanted.training_format, timed, "step", cache),
        _chosen(wanted.server_precision, wanted.server_format, timed, "forward", cache),
    )


def settled(training: Compute, server: Compute) -> ComputeSettings:
    """Return the settings that ask for nothing but what was chosen, on this processor."""
    return ComputeSettings(
        training_precision=training.precision,
        server_precision=server.precision,
        training_format=training.memory_format,
        server_format=server.memory_format,
        processor=processor(),
    )


def processor() -> str:
    """Return the names of the processor and of PyTorch's version: bits may differ with either."""
    name = platform.processor() or platform.machine()
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            if line.startswith("model name"):
                name = line.split(":", 1)[1].strip()
                break
    return f"{name} ({torch.backends.cpu.get_cpu_capability()}), torch {torch.__version__}"


def _chosen(precision: str, memory_format: str, timed: Timed, what: str, cache: Path) -> Compute:
    """Return the one way that is allowed, or the fastest of several."""
    pictures = any(isinstance(part, nn.Conv2d) for part in timed.module.modules())
    usual = Compute.usual(timed.module)
    formats = FORMATS if pictures else (usual.memory_format,)
    ways = [
        Compute(one_precision, one_format)
        for one_precision in PRECISIONS
        for one_format in formats
        if precision in ("auto", one_precision) and memory_format in ("auto", one_format)
    ]
    if not ways:
        return Compute(
            "bf16" if precision == "bf16" else "float32",
            "channels_last" if memory_format == "channels_last" else "contiguous",
        )
    if usual in ways:
        ways.remove(usual)
        ways.insert(0, usual)
    if len(ways) == 1:
        return ways[0]
    return _kept(ways, timed, what, cache)


def _kept(ways: Sequence[Compute], timed: Timed, what: str, cache: Path) -> Compute:
    """Return the fastest way from the cache, or measure it now and keep it there."""
    path = cache / "compute" / f"{_key(ways, timed, what)}.json"
    with suppress(OSError, FileError):
        place = read_json(path, _place)
        if place < len(ways):
            return ways[place]
    seconds = race([getattr(timed, what)(way) for way in ways])
    place = fastest(seconds)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        facts = [[way.precision, way.memory_format] for way in ways]
        kept = {"place": place, "ways": facts, "seconds": seconds, "processor": processor()}
        write_text(path, to_json(kept) + "\n")
    except OSError as error:
        logger.warning("what was measured of this processor is not kept: %s", error)
    return ways[place]


def _place(values: Any) -> int:
    if type(values) is not dict or type(values.get("place")) is not int or values["place"] < 0:
        raise ValueError("it must have a place >= 0")
    return int(values["place"])


def race(calls: Sequence[Callable[[], None]], turns: int = TURNS) -> list[float]:
    """Return the least seconds of each call: after one to warm up, so many times, in turns."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.random.fork_rng(devices=[]):
            best = [float("inf")] * len(calls)
            for turn in range(turns + 1):
                for place, call in enumerate(calls):
                    begun = perf_counter()
                    call()
                    if turn:
                        best[place] = min(best[place], perf_counter() - begun)
            return best
    finally:
        torch.set_num_threads(threads)


def fastest(seconds: Sequence[float]) -> int:
    """Return the place of the least, or 0 if that is not clearly less than the first.

    >>> fastest([1.0, 0.97, 0.99]), fastest([1.0, 0.9, 0.8])
    (0, 2)
    """
    best = min(range(len(seconds)), key=seconds.__getitem__)
    return best if seconds[best] <= GAIN * seconds[0] else 0


def _key(ways: Sequence[Compute], timed: Timed, what: str) -> str:
    layout = Layout.of_module(timed.module)
    facts = [
        processor(),
        what,
        [[way.precision, way.memory_format] for way in ways],
        repr(timed.module),
        [(slot.name, slot.shape) for slot in layout.slots],
        list(timed.examples.inputs.shape[1:]),
        timed.training.batch_size,
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
