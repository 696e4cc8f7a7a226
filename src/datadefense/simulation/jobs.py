"""Jobs of a round, and the one function that does them in whatever process."""

from dataclasses import dataclass
from time import perf_counter
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackContext, imitation, seed_module
from datadefense.core.examples import Examples
from datadefense.core.local_training import Trainer
from datadefense.core.rng import derive_seed, generator
from datadefense.kernels.memory import empty_matrix
from datadefense.schedules.base import Participant
from datadefense.simulation.federation import Federation
from datadefense.simulation.scores import score_called


@dataclass(frozen=True, slots=True)
class TrainJob:
    """Train one participant and write its update into row ``row`` of the matrix.

    ``stand_in`` is the number of the honest client that an attacker imitates; None: it attacks.
    ``state`` is what the attack remembers.
    """

    index: int
    row: int
    person: Participant
    attacker: tuple[int, int]
    num_examples: int
    has_previous: bool
    stand_in: int | None = None
    state: Any = None


@dataclass(frozen=True, slots=True)
class CountJob:
    """Count what a score is the mean of, in a part of its test set; ``score`` is its name."""

    score: str
    start: int
    stop: int


Job = TrainJob | CountJob


@dataclass(frozen=True, slots=True, eq=False)
class SharedBuffers:
    """Memory that all processes of a run share: what jobs read and where they write.

    ``params`` is the global model, ``previous`` the one before it, ``updates`` one row a slot and,
    behind these, one for each stand-in that attackers may want.
    """

    params: Float[Tensor, " dim"]
    previous: Float[Tensor, " dim"]
    updates: Float[Tensor, "rows dim"]

    @classmethod
    def of(cls, federation: Federation) -> "SharedBuffers":
        """Allocate it in shared memory."""
        dim = federation.layout.dim
        rows = federation.clients_per_round + federation.stand_ins(attackers=1)
        shapes = ((dim,), (dim,), (rows, dim))
        tensors = [torch.zeros(shape, dtype=federation.layout.dtype) for shape in shapes]
        for tensor in tensors:
            tensor.share_memory_()  # type: ignore[no-untyped-call]
        return cls(*tensors)

    def rows(self, count: int, first: int = 0) -> Float[Tensor, "count dim"]:
        """Return a copy of so many rows, which may be kept: the next round writes over these."""
        copied = empty_matrix(count, self.updates.shape[1], self.updates.dtype)
        return copied.copy_(self.updates[first : first + count])


@dataclass(frozen=True, slots=True)
class JobResult:
    """What a job comes back with: a count where one was asked for, and the seconds it took."""

    count: float
    seconds: float


def do_job(job: Job, federation: Federation, board: SharedBuffers, trainer: Trainer) -> JobResult:
    """Do one job: same bits in any process that computes with one thread."""
    start, count = perf_counter(), 0.0
    if isinstance(job, CountJob):
        trainer.load(board.params)
        count = score_called(job.score).count(trainer, test_part(job, federation))
    elif job.person.is_malicious:
        _attack(job, federation, board, trainer)
    else:
        _train(job, federation, board, trainer)
    return JobResult(count, perf_counter() - start)


def test_part(job: CountJob, federation: Federation) -> Examples:
    """Return the examples of a counting job, as views."""
    examples = score_called(job.score).examples(federation)
    part = slice(job.start, job.stop)
    return Examples(examples.inputs[part], examples.labels[part])


def _train(job: TrainJob, federation: Federation, board: SharedBuffers, trainer: Trainer) -> None:
    client = int(job.person.client_id)
    torch.manual_seed(derive_seed(federation.seed, "dropout", job.index, client))
    trainer.load(board.params)
    trainer.train(
        federation.training.in_round(job.index),
        federation.train.take(federation.shards[client]),
        generator(federation.seed, "client", job.index, client),
        augment=federation.augment,
    )
    trainer.write_update(board.params, board.updates[job.row])


def context_of(job: TrainJob, federation: Federation, board: SharedBuffers) -> AttackContext:
    """Return what an attacker knows when its job begins."""
    return AttackContext(
        index=job.index,
        start=board.params,
        previous=board.previous if job.has_previous else None,
        num_examples=job.num_examples,
        attacker=job.attacker,
        training=federation.training.in_round(job.index),
        augment=federation.augment,
        seed=federation.seed,
        first=federation.start,
        clients=federation.clients_per_round,
        rate_factor=federation.training.decay ** (job.index - 1),
        state=job.state,
    )


def _attack(job: TrainJob, federation: Federation, board: SharedBuffers, trainer: Trainer) -> None:
    if federation.attack is None or federation.attacker_data is None:
        raise ValueError("an attacker takes part, but the federation has no attack")
    context = context_of(job, federation, board)
    attacker_data = federation.attacker_data.in_turn(
        federation.schedule.turn(job.index) + job.attacker[0]
    )
    if job.stand_in is None:
        update = federation.attack.update(trainer, attacker_data, context)
    else:
        seed_module(context, "imitation", job.stand_in)
        update = imitation(trainer, attacker_data, context, job.stand_in)
    board.updates[job.row].copy_(update)
