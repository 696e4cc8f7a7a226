"""A node: trains whichever client of the experiment it is told to, as a worker of ours would."""

import functools
import tomllib
from dataclasses import replace
from pathlib import Path

import torch
from flwr.app import Context, Message
from flwr.clientapp import ClientApp

from datadefense.core.local_training import Trainer
from datadefense.flower.engine.messages import (
    PARAMS,
    PREVIOUS,
    read_job,
    update_content,
)
from datadefense.runs.build import assemble
from datadefense.runs.config import Experiment
from datadefense.simulation.federation import Federation
from datadefense.simulation.jobs import SharedBuffers, do_job

client_app = ClientApp()


@client_app.train()
def train(message: Message, context: Context) -> Message:
    """Do the job of a message and answer with the update."""
    torch.set_num_threads(1)
    job, models, config = read_job(message)
    folder = context.node_config.get("data", context.run_config.get("data", ""))
    federation, trainer = _workplace(config, str(folder))
    params = models[PARAMS]
    updates = torch.zeros(1, len(params), dtype=params.dtype)
    answer = do_job(
        job, federation, SharedBuffers(params, models.get(PREVIOUS, params), updates), trainer
    )
    return Message(update_content(updates[0], answer), reply_to=message)


@functools.lru_cache(maxsize=1)
def _workplace(config: str, data: str) -> tuple[Federation, Trainer]:
    """Return the federation and a place to train, made once in a process for an experiment.

    The server's own defense set stays with the server: a node does not have its folder.
    """
    experiment = Experiment(**tomllib.loads(config))
    experiment = replace(experiment, defense_folder=None, defense_digest=None)
    federation, _ = assemble(experiment, Path(data) if data else None)
    return federation, Trainer(federation.module, federation.layout)
