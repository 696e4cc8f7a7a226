"""The task: model, data, training and what it is judged by. Change this file for your own task."""

import copy
from dataclasses import replace
from functools import cache

import torch
from torch import Tensor, nn

from datadefense.core.defense_set import DefenseSet
from datadefense.core.examples import Examples
from datadefense.core.features import penultimate
from datadefense.core.local_training import Sgd, Trainer
from datadefense.core.predictor import Layout
from datadefense.core.rng import generator
from datadefense.data.partition import iid
from datadefense.tasks.base import TaskData
from datadefense.tasks.digits_edge import DigitsEdge

TRAINING = Sgd(epochs=2, weight_decay=1e-4)
"""How nodes train."""
KNOWN_CLEAN = 100
"""Examples of the server that somebody has looked at."""


@cache
def material(seed: int) -> TaskData:
    """Deal out digits and strange sevens: no two holders share an example.

    It holds a fresh model (``module``), the digits of all nodes (``clients``), the attacker's
    (``attacker``), the server's (``warm``, ``server_clean``, ``server_poison``), and what the
    model is judged by (``test``, ``backdoor_test``).
    """
    torch.manual_seed(seed)
    return DigitsEdge().load(None, seed)


def shard(seed: int, node: int, nodes: int) -> Examples:
    """Return what one node holds."""
    everything = material(seed).clients
    return everything.take(iid(len(everything), nodes, generator(seed, "partition"))[node])


def bench_of(model: nn.Module) -> Trainer:
    """Return what trains and tries a model."""
    return Trainer(model, Layout.of_module(model))


def train(
    model: nn.Module, examples: Examples, draw: torch.Generator, training: Sgd = TRAINING
) -> dict[str, Tensor]:
    """Train the model in place and return its state."""
    bench_of(model).train(training, examples, draw)
    return model.state_dict()


def warm_model(seed: int) -> nn.Module:
    """Return the model that the federation begins with, trained by the server alone."""
    model = copy.deepcopy(material(seed).module)
    longer = replace(TRAINING, epochs=4)
    train(model, material(seed).warm, generator(seed, "warm start"), longer)
    return model


def server_set(model: nn.Module, seed: int) -> DefenseSet:
    """Return the server's examples: clean ones, a few of them known to be, and poisoned ones.

    Of your own: `datadefense defense-set build`, then `datadefense.defense_sets.folder`.
    """
    clean, poisoned = material(seed).server_clean, material(seed).server_poison
    examples = clean.join(poisoned)
    known = torch.arange(len(examples)) < KNOWN_CLEAN
    return DefenseSet(examples, known, penultimate(model, examples.inputs))


def judge(model: nn.Module, seed: int) -> dict[str, float]:
    """Return accuracy on the task (MA) and success rate of the backdoor (ASR), in percent."""
    sets = {"ma_percent": material(seed).test, "asr_percent": material(seed).backdoor_test}
    trainer = bench_of(model)
    return {name: 100 * trainer.count_correct(test) / len(test) for name, test in sets.items()}
