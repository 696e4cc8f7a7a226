"""A node: trains whichever client of the experiment it is told to, as a worker of ours would."""

from dataclasses import replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from flwr.app import Context, Message
from flwr.clientapp import ClientApp
from torch import Tensor

from datadefense.core.local_training import Trainer
from datadefense.flower.engine.messages import (
    PARAMS,
    PREVIOUS,
    read_job,
    update_content,
)
from datadefense.runs.build import assemble
from datadefense.runs.config import parse_toml
from datadefense.simulation.federation import Federation
from datadefense.simulation.jobs import SharedBuffers, do_job

client_app = ClientApp()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Do the job of a message and answer with the update."""
    torch.set_num_threads(1)
    folder = str(context.node_config.get("data", context.run_config.get("data", "")))
    job, models, config = read_job(message, partial(_attack_state, folder))
    federation, trainer = _workplace(config, folder)
    params = models[PARAMS]
    updates = torch.zeros(1, len(params), dtype=params.dtype)
    answer = do_job(
        job, federation, SharedBuffers(params, models.get(PREVIOUS, params), updates), trainer
    )
    return Message(update_content(updates[0], answer), reply_to=message)


@lru_cache(maxsize=1)
def _workplace(config: str, data: str) -> tuple[Federation, Trainer]:
    """Return the federation and a place to train, made once in a process for an experiment.

    The server's own defense set stays with the server: a node does not have its folder.
    """
    experiment = parse_toml(config)
    own = replace(experiment.server, folder=None, digest=None)
    experiment = replace(experiment, server=own)
    federation, _ = assemble(experiment, Path(data) if data else None)
    return federation, federation.trainer()


def _attack_state(folder: str, config: str, params: Tensor) -> Any:
    """Return a state of the kind that the experiment's attack remembers."""
    federation, _ = _workplace(config, folder)
    return None if federation.attack is None else federation.attack.init(params)
