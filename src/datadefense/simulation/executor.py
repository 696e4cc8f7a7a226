"""Workers: whoever does the jobs of a round, in this process, in others or on other machines."""

from collections.abc import Sequence
from typing import Protocol

from datadefense.simulation.jobs import Job, JobResult, SharedBuffers


class Workers(Protocol):
    """What a run asks of those who train its clients: the same bits, whoever they are."""

    @property
    def board(self) -> SharedBuffers:
        """Memory that jobs read from and write to."""

    def run(self, jobs: Sequence[Job]) -> list[JobResult]:
        """Do all jobs and return their answers in the order of the list."""

    def idle_cores(self) -> int:
        """Return how many cores on this machine are free while no job is under way."""

    def peak_memory_mb(self) -> float | None:
        """Return the peak of resident memory of all processes; None if unknown."""
