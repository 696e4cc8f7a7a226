"""All schedules by name, and those that other packages bring."""

from collections.abc import Mapping

from datadefense.core.registry import Registry
from datadefense.schedules.base import Participant, Schedule, participants
from datadefense.schedules.fixed_frequency import FixedFrequency
from datadefense.schedules.fixed_pool import FixedPool
from datadefense.schedules.never import Never

SCHEDULES: Mapping[str, type[Schedule]] = {
    schedule.name: schedule for schedule in (FixedFrequency, FixedPool, Never)
}
"""The schedules of this package."""

REGISTRY: Registry[Schedule] = Registry("schedule", Schedule, "datadefense.schedules", SCHEDULES)
"""Ours, those of installed packages, and ``module:Class``."""

__all__ = [
    "REGISTRY",
    "SCHEDULES",
    "FixedFrequency",
    "FixedPool",
    "Never",
    "Participant",
    "Schedule",
    "participants",
]
