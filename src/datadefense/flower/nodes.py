"""Nodes that are there: waiting for them with a limit, and a grid that does not change."""

import copy
import logging
import time
from collections.abc import Iterable

from flwr.serverapp import Grid
from flwr.serverapp.strategy import Strategy

from datadefense.core.errors import DataDefenseError
from datadefense.flower.wrapped_grid import WrappedGrid

logger = logging.getLogger("flwr.datadefense")
"""A child of Flower's logger: what is said here is shown and streamed with the run's log."""


class TooFewNodesError(DataDefenseError, RuntimeError):
    """Fewer nodes than the stated minimum are connected, and the time to wait is over."""


def wait_for_nodes(grid: Grid, wanted: int, least: int, seconds: float) -> list[int]:
    """Return the connected nodes: ``wanted`` of them, or after some time at least ``least``."""
    ends = time.monotonic() + seconds
    while True:
        nodes = sorted(grid.get_node_ids())
        if len(nodes) >= wanted:
            return nodes
        if time.monotonic() >= ends:
            break
        time.sleep(min(1.0, max(0.0, ends - time.monotonic())))
    if len(nodes) < least:
        raise TooFewNodesError(
            f"{len(nodes)} nodes are connected after {seconds:g} s, min_nodes is {least}: "
            "start more, or lower it"
        )
    logger.warning("going on with %d nodes where %d were wanted", len(nodes), wanted)
    return nodes


class FixedNodesGrid(WrappedGrid):
    """A grid on which the given nodes are connected, whatever happens meanwhile.

    Flower's strategies wait without a limit if a node leaves while they choose.
    """

    def __init__(self, grid: Grid, nodes: list[int]) -> None:
        super().__init__(grid)
        self._nodes = nodes

    def get_node_ids(self) -> Iterable[int]:
        """Return the nodes."""
        return list(self._nodes)


MINIMA = ("min_available_nodes", "min_train_nodes", "min_evaluate_nodes")
"""Numbers of nodes below which Flower's strategies wait."""


def wanted_nodes(strategy: Strategy) -> int:
    """Return how many nodes a strategy waits for."""
    return max([1, *(int(getattr(strategy, name, 0)) for name in MINIMA)])


def with_minima_at_most(strategy: Strategy, nodes: int) -> Strategy:
    """Return a copy of a strategy that takes as many nodes as there are."""
    changed = copy.copy(strategy)
    for name in MINIMA:
        if hasattr(changed, name):
            setattr(changed, name, min(int(getattr(changed, name)), nodes))
    return changed
