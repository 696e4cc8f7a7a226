"""All post-aggregators by name, and those that other packages bring."""

from collections.abc import Mapping
from typing import Any

from datadefense.core.postaggregator import PostAggregator, Step
from datadefense.core.registry import Registry
from datadefense.postaggregators.fedadam import FedAdam
from datadefense.postaggregators.server_momentum import ServerMomentum
from datadefense.postaggregators.server_step import ServerStep

POSTAGGREGATORS: Mapping[str, type[PostAggregator[Any]]] = {
    "server-step": ServerStep,
    "server-momentum": ServerMomentum,
    "fedadam": FedAdam,
}
"""The post-aggregators of this package."""

REGISTRY: Registry[PostAggregator[Any]] = Registry(
    "post-aggregator",
    PostAggregator,  # type: ignore[type-abstract]
    "datadefense.postaggregators",
    POSTAGGREGATORS,
)
"""Ours, those of installed packages, and ``module:Class``."""

__all__ = [
    "POSTAGGREGATORS",
    "REGISTRY",
    "FedAdam",
    "PostAggregator",
    "ServerMomentum",
    "ServerStep",
    "Step",
]
