"""A pool whose workers are Flower's nodes: clients train there, counting is done here."""

import logging
from collections.abc import Sequence

from flwr.app import Message, MessageType
from flwr.serverapp import Grid

from datadefense.core.foreign import error_text
from datadefense.flower.engine.messages import job_content, read_update
from datadefense.flower.nodes import wait_for_nodes
from datadefense.flower.post import Post
from datadefense.simulation.federation import Federation
from datadefense.simulation.jobs import CountJob, Job, JobResult, SharedBuffers, TrainJob
from datadefense.simulation.pool import Pool, WorkerError

logger = logging.getLogger(__name__)
MOST_TRIES = 3
"""After so many nodes that failed a job, the job is to blame."""


class GridPool:
    """Do the jobs of a round on the nodes of a grid; the rest of a run is as ever.

    A job that a node does not answer, or answers with an error, goes to another node: it has the
    same bits wherever it is done.

    Args:
        federation: what the jobs are about.
        grid: Flower's connection to its nodes.
        config: the experiment as TOML, which each node makes the federation from.
        seconds: how long to wait for the answers of a round, and for nodes to be there.
    """

    def __init__(
        self, federation: Federation, grid: Grid, config: str, seconds: float = 600.0
    ) -> None:
        self._here = Pool(federation)
        self._grid, self._config, self._seconds = Post(grid), config, seconds

    @property
    def board(self) -> SharedBuffers:
        """Memory that jobs read from and write to."""
        return self._here.board

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Do all jobs and return their answers in the order of the list."""
        counts = [job for job in jobs if isinstance(job, CountJob)]
        trains = [job for job in jobs if isinstance(job, TrainJob)]
        counted, trained = iter(self._here.run(counts)), self._train(trains)
        return [trained[job.row] if isinstance(job, TrainJob) else next(counted) for job in jobs]

    def idle_cores(self) -> int:
        """Return 1: nodes on this machine may be at work for somebody else."""
        return 1

    def peak_memory_mb(self) -> float | None:
        """Return None: what the nodes use is not known here."""
        return None

    def _train(self, jobs: Sequence[TrainJob]) -> dict[int, JobResult]:
        """Return the answers by row; the updates are then on the board."""
        answers: dict[int, JobResult] = {}
        for turn in range(MOST_TRIES):
            left = [job for job in jobs if job.row not in answers]
            if not left:
                break
            nodes = wait_for_nodes(self._grid, 1, 1, self._seconds)
            asked = [
                Message(
                    job_content(job, self.board, self._config),
                    dst_node_id=nodes[(job.row + turn) % len(nodes)],
                    message_type=MessageType.TRAIN,
                )
                for job in left
            ]
            replies = list(self._grid.send_and_receive(asked, timeout=self._seconds))
            of_message = {
                message.metadata.message_id: job for message, job in zip(asked, left, strict=True)
            }
            for reply in replies:
                job = of_message[reply.metadata.reply_to_message_id]
                try:
                    answers[job.row] = read_update(reply, self.board.updates[job.row])
                except Exception as error:
                    logger.warning("client %s: %s", job.person.client_id, error_text(error))
        if missing := [job.person.client_id for job in jobs if job.row not in answers]:
            raise WorkerError(
                f"{MOST_TRIES} nodes gave no update for clients {missing}; "
                "the log of the nodes says why"
            )
        return answers
