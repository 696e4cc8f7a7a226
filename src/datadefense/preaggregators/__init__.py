"""All pre-aggregators by name, and those that other packages bring."""

from collections.abc import Mapping
from typing import Any

from datadefense.core.preaggregator import Mixed, Mixer, PreAggregator, Prepared
from datadefense.core.registry import Registry
from datadefense.preaggregators.arc import Arc
from datadefense.preaggregators.bucketing import Bucketing
from datadefense.preaggregators.clip import Clip
from datadefense.preaggregators.nnm import Nnm

PREAGGREGATORS: Mapping[str, type[PreAggregator[Any]]] = {
    "clip": Clip,
    "bucketing": Bucketing,
    "nnm": Nnm,
    "arc": Arc,
}
"""The pre-aggregators of this package."""

REGISTRY: Registry[PreAggregator[Any]] = Registry(
    "pre-aggregator",
    PreAggregator,  # type: ignore[type-abstract]
    "datadefense.preaggregators",
    PREAGGREGATORS,
)
"""Ours, those of installed packages, and ``module:Class``."""

__all__ = [
    "PREAGGREGATORS",
    "REGISTRY",
    "Arc",
    "Bucketing",
    "Clip",
    "Mixed",
    "Mixer",
    "Nnm",
    "PreAggregator",
    "Prepared",
]
