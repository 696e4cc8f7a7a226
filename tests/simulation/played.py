"""A few rounds of a federation, and what is compared of two such plays."""

from dataclasses import replace

from datadefense import Server, create
from datadefense.simulation.pool import Pool
from datadefense.simulation.rounds import begin, simulate


def play(federation, name="fedavg", rounds=4, workers=0, progress=None, *, server=None, **options):
    """Return the records and the last progress; ``name`` may be a defense."""
    defense = create(name) if isinstance(name, str) else name
    server = server or Server()
    with Pool(federation, workers) as pool:
        steps = list(
            simulate(
                federation,
                defense,
                server,
                pool,
                progress=progress or begin(federation, defense, server),
                rounds=rounds,
                **options,
            )
        )
    return [record for record, _ in steps], steps[-1][1]


def without_times(records):
    return [replace(record, seconds={}) for record in records]
