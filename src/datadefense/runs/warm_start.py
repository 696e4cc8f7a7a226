"""Warm starts: a model trained to a stated accuracy, once, and kept."""

import copy
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

from datadefense.core.local_training import Sgd, Trainer
from datadefense.core.predictor import Layout
from datadefense.core.rng import derive_seed, generator
from datadefense.core.settings import SettingsError
from datadefense.core.storage import exclusive_lock, save_tensors
from datadefense.runs.config import Experiment
from datadefense.tasks.base import TaskData

logger = logging.getLogger(__name__)
STEPS_BETWEEN_TESTS = 250
MOST_EPOCHS = 60
Report = Callable[[float, float], None]
"""``report(epochs so far, accuracy in percent)``."""


def warm_start(
    experiment: Experiment, material: TaskData, cache: Path, report: Report | None = None
) -> Float[Tensor, " dim"]:
    """Return the parameters that a run begins with: from the cache, or trained now.

    Training stops at ``warm_accuracy_percent`` on the test set, so that every run of a setup begins
    where the paper's does. The cache's key is everything that the result depends on; one that
    cannot be written costs only time. Who comes second to one that is being trained waits for it.
    """
    layout = Layout.of_module(material.module)
    path = cache / "warm" / f"{_key(experiment, material, layout)}.safetensors"
    if (kept := _read(path, layout)) is not None:
        return kept
    with ExitStack() as stack:
        with suppress(OSError):
            stack.enter_context(exclusive_lock(path.with_suffix(".lock")))
        if (kept := _read(path, layout)) is not None:
            return kept
        params = _train(experiment, material, layout, report)
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            save_tensors(path, {"params": params}, {"setup": experiment.setup})
        except OSError as error:
            logger.warning("the warm start is not kept: %s", error)
        return params


def _read(path: Path, layout: Layout) -> Float[Tensor, " dim"] | None:
    """Return the parameters that a file has; None if it is absent or broken."""
    try:
        kept = load_file(path)["params"]
    except (SafetensorError, OSError, KeyError):
        return None
    return kept if kept.shape == (layout.dim,) and bool(kept.isfinite().all()) else None


def _train(
    experiment: Experiment, material: TaskData, layout: Layout, report: Report | None
) -> Float[Tensor, " dim"]:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(experiment.warm_seed, "warm start"))
        trainer = Trainer(copy.deepcopy(material.module), layout)
        wanted = experiment.warm_accuracy_percent
        draw = generator(experiment.warm_seed, "warm start")
        sgd = Sgd(1, experiment.warm_batch_size, experiment.warm_learning_rate, 0.9, 1e-4)
        examples = material.warm
        part_size = min(len(examples), STEPS_BETWEEN_TESTS * sgd.batch_size)
        accuracy = seen = 0.0
        while seen < MOST_EPOCHS:
            order = torch.randperm(len(examples), generator=draw)
            for start in range(0, len(order) - part_size + 1, part_size):
                part = examples.take(order[start : start + part_size])
                trainer.train(sgd, part, draw, augment=material.augment)
                seen += len(part) / len(examples)
                accuracy = 100 * trainer.count_correct(material.test) / len(material.test)
                if report is not None:
                    report(seen, accuracy)
                if accuracy >= wanted:
                    origin = torch.zeros(layout.dim, dtype=layout.dtype)
                    return trainer.write_update(origin, torch.empty_like(origin))
    raise SettingsError(
        f"the warm start reached {accuracy:.1f} % in {MOST_EPOCHS} epochs, not {wanted:.1f} %"
    )


def _key(experiment: Experiment, material: TaskData, layout: Layout) -> str:
    facts = [
        experiment.setup if experiment.setup == "digits-edge" else experiment.dataset,
        [(slot.name, slot.shape) for slot in layout.slots],
        experiment.warm_accuracy_percent,
        experiment.warm_learning_rate,
        experiment.warm_batch_size,
        experiment.warm_seed,
        experiment.augment,
        len(material.warm),
        len(material.test),
        hashlib.sha256(material.warm.labels.numpy().tobytes()).hexdigest(),
    ]
    return hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
