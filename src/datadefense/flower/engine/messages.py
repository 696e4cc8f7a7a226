"""Jobs as messages: what a node needs to train one client, and what it sends back.

A node is told the experiment, the round, which client to train and the global model. It answers
with the update itself, so that not a bit is lost in a sum and a difference.
"""

import math
from collections.abc import Callable
from typing import Any

from flwr.app import Array, ArrayRecord, ConfigRecord, Message, MetricRecord, RecordDict
from torch import Tensor

from datadefense.core.storage import state_bytes, state_of
from datadefense.flower.arrays import read_record
from datadefense.schedules.base import Participant
from datadefense.simulation.jobs import JobResult, SharedBuffers, TrainJob

PARAMS, PREVIOUS, UPDATE = "params", "previous", "update"


def job_content(job: TrainJob, board: SharedBuffers, config: str) -> RecordDict:
    """Return a job with the models that it needs; ``config`` is the experiment as TOML."""
    models = {PARAMS: board.params}
    if job.has_previous and job.person.is_malicious:
        models[PREVIOUS] = board.previous
    facts = ConfigRecord(
        {
            "experiment": config,
            "index": job.index,
            "client": job.person.client_id,
            "attacks": job.person.is_malicious,
            "attacker": list(job.attacker),
            "num-examples": job.num_examples,
        }
    )
    if job.stand_in is not None:
        facts["stand-in"] = job.stand_in
    if job.state is not None:
        facts["state"] = state_bytes((job.state,))
    arrays = {name: Array(model.numpy()) for name, model in models.items()}
    return RecordDict({"arrays": ArrayRecord(arrays), "job": facts})


def read_job(
    message: Message, like: Callable[[str, Tensor], Any]
) -> tuple[TrainJob, dict[str, Tensor], str]:
    """Return the job, with its row 0, its models by name, and the experiment as TOML.

    ``like`` makes, of the experiment and the model, a state of the kind that the attack remembers.
    """
    facts = message.content.config_records["job"]
    models = read_record(message.content.array_records["arrays"])
    client, attacker = facts["client"], facts["attacker"]
    if not isinstance(client, int | str) or not isinstance(attacker, list):
        raise ValueError("the message is no job of this engine")
    first, count = (int(number) for number in attacker)
    stored, config = facts.get("state"), str(facts["experiment"])
    state = None
    if isinstance(stored, bytes):  # in a tuple, as in a checkpoint: what began as None may be more
        (state,) = state_of(stored, (like(config, models[PARAMS]),))
    job = TrainJob(
        index=int(str(facts["index"])),
        row=0,
        person=Participant(client, bool(facts["attacks"])),
        attacker=(first, count),
        num_examples=int(str(facts["num-examples"])),
        has_previous=PREVIOUS in models,
        stand_in=int(str(facts["stand-in"])) if "stand-in" in facts else None,
        state=state,
    )
    return job, models, config


def update_content(update: Tensor, answer: JobResult) -> RecordDict:
    """Return an update as a node sends it."""
    return RecordDict(
        {
            "arrays": ArrayRecord({UPDATE: Array(update.numpy())}),
            "metrics": MetricRecord({"seconds": answer.seconds}),
        }
    )


def read_update(message: Message, row: Tensor) -> JobResult:
    """Write the update of a reply into its row; an error or another form raises, and writes not."""
    if message.has_error():
        raise ValueError(f"error {message.error.code}: {message.error.reason}")
    update = read_record(message.content.array_records["arrays"])[UPDATE]
    if (update.shape, update.dtype) != (row.shape, row.dtype):
        raise ValueError(
            f"the update is {update.dtype} of shape {tuple(update.shape)}, "
            f"expected {row.dtype} of shape {tuple(row.shape)}"
        )
    row.copy_(update)
    return JobResult(0, _seconds(message.content))


def _seconds(content: RecordDict) -> float:
    """Return how long a node says that it took; 0 where it says nothing that could be."""
    record = content.metric_records.get("metrics")
    said = None if record is None else record.get("seconds")
    return said if isinstance(said, float) and 0 <= said < math.inf else 0.0
