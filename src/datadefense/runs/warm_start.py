"""Warm starts: a model trained to a stated accuracy, once, and kept."""

import copy
import dataclasses
import hashlib
import json
import logging
from collections.abc import Callable
from contextlib import ExitStack, suppress
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

from datadefense.core.compute import Compute
from datadefense.core.local_training import Trainer
from datadefense.core.predictor import Layout
from datadefense.core.rng import derive_seed, generator
from datadefense.core.settings import SettingsError
from datadefense.core.storage import exclusive_lock, save_tensors
from datadefense.runs.parts import WarmStart
from datadefense.tasks.base import TaskData

logger = logging.getLogger(__name__)
STEPS_BETWEEN_TESTS = 250
Report = Callable[[float, float], None]
"""``report(epochs so far, accuracy in percent)``."""


def warm_start(
    warm: WarmStart,
    data: TaskData,
    cache: Path,
    report: Report | None = None,
    compute: Compute | None = None,
) -> Float[Tensor, " dim"]:
    """Return the parameters that a run begins with: from the cache, or trained now.

    Training stops at the wanted accuracy on the test set, so that every run of a task begins where
    the paper's does. The cache's key is everything that the result depends on; one that cannot be
    written costs only time. Who comes second to one that is being trained waits for it.
    """
    layout = Layout.of_module(data.module)
    if not warm.epochs:
        return layout.flatten(data.module.state_dict())
    path = cache / "warm" / f"{_key(warm, data, layout)}.safetensors"
    if (params := _read(path, layout)) is not None:
        return params
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(exclusive_lock(path.with_suffix(".lock")))
        if (params := _read(path, layout)) is not None:
            return params
        params = _train(warm, data, layout, report, compute)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            save_tensors(path, {"params": params}, {})
        except OSError as error:
            logger.warning("the warm start is not stored: %s", error)
        return params


def _read(path: Path, layout: Layout) -> Float[Tensor, " dim"] | None:
    """Return the parameters that a file has; None if it is absent or broken."""
    try:
        params = load_file(path)["params"]
    except (SafetensorError, OSError, KeyError):
        return None
    return params if params.shape == (layout.dim,) and bool(params.isfinite().all()) else None


def _train(
    warm: WarmStart,
    data: TaskData,
    layout: Layout,
    report: Report | None,
    compute: Compute | None,
) -> Float[Tensor, " dim"]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(warm.seed, "warm start"))
        trainer = Trainer(copy.deepcopy(data.module), layout, compute=compute)
        draw = generator(warm.seed, "warm start")
        sgd, examples = warm.training(), data.warm
        part_size = min(len(examples), STEPS_BETWEEN_TESTS * sgd.batch_size)
        accuracy = seen = 0.0
        reached = False
        while seen < warm.epochs and not reached:
            order = torch.randperm(len(examples), generator=draw)
            for start in range(0, len(order) - part_size + 1, part_size):
                part = examples.take(order[start : start + part_size])
                trainer.train(sgd, part, draw, augment=data.augment)
                seen += len(part) / len(examples)
                accuracy = 100 * trainer.count_correct(data.test) / len(data.test)
                if report is not None:
                    report(seen, accuracy)
                reached = warm.accuracy_percent is not None and accuracy >= warm.accuracy_percent
                if reached:
                    break
        if not reached and warm.accuracy_percent is not None:
            raise SettingsError(
                f"the warm start reached {accuracy:.1f} % in {warm.epochs} epochs, not "
                f"{warm.accuracy_percent:.1f} %"
            )
        origin = torch.zeros(layout.dim, dtype=layout.dtype)
        return trainer.write_update(origin, torch.empty_like(origin))


def _key(warm: WarmStart, data: TaskData, layout: Layout) -> str:
    """Return a hash of the settings, of the module before training, and of the data."""
    facts = [
        [(slot.name, slot.shape) for slot in layout.slots],
        dataclasses.astuple(warm),
        repr(data.augment and data.augment.__qualname__),
        len(data.warm),
        len(data.test),
    ]
    hashed = hashlib.sha256(json.dumps(facts).encode())
    first = layout.flatten(data.module.state_dict())
    for tensor in (first, data.warm.labels, data.warm.inputs[:64], data.test.labels):
        hashed.update(tensor.contiguous().numpy().tobytes())
    return hashed.hexdigest()[:16]
