"""Resumed runs: the name of the run, how many rounds are done, and the numbers of its rounds."""

import dataclasses
from pathlib import Path

from flwr.serverapp import Grid
from flwr.serverapp.strategy import Result

from datadefense.flower.nodes import logger


def app_name(grid: Grid) -> str:
    """Return the running app's name, "publisher/name", as Flower knows it; "" if it knows none.

    The name stays the same however often the app is started, and from version to version.
    """
    try:
        return str(grid.run.fab_id)
    except (AttributeError, NotImplementedError, TypeError):  # a grid without a run
        return ""


def log_what_is_left(folder: Path | None, before: int, num_rounds: int) -> None:
    """Log where a run is kept, how far it is, and whether anything is left to do."""
    if folder is None:
        return
    place = folder.absolute()
    if before == 0:
        logger.info("state and audit trail are kept in %s", place)
    elif before < num_rounds:
        logger.warning("going on after round %d of %s", before, place)
    else:
        logger.warning(
            "nothing is left to do: %s has %d rounds, num_rounds is %d; no node is asked, and the "
            "model is the stored one. To start again, choose another folder; to continue, raise "
            "num_rounds",
            place,
            before,
            num_rounds,
        )


def renumbered(result: Result, before: int) -> Result:
    """Return the result with the rounds' own numbers."""
    for field in dataclasses.fields(result):
        series = getattr(result, field.name)
        if isinstance(series, dict):
            setattr(result, field.name, {index + before: value for index, value in series.items()})
    return result
