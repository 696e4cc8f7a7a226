"""All tasks by name, and those that other packages bring."""

from collections.abc import Mapping

from datadefense.core.registry import Registry
from datadefense.tasks.base import Aim, Scaling, Task, TaskData
from datadefense.tasks.cifar10_label_flip import Cifar10LabelFlip
from datadefense.tasks.cifar10_southwest import Cifar10Southwest
from datadefense.tasks.cifar10_trigger import Cifar10Trigger
from datadefense.tasks.cifar100_trigger import Cifar100Trigger
from datadefense.tasks.digits_edge import DigitsEdge
from datadefense.tasks.emnist_ardis import EmnistArdis
from datadefense.tasks.named import task_class
from datadefense.tasks.own import OwnTask
from datadefense.tasks.sentiment_yl import SentimentYl

TASKS: Mapping[str, type[Task]] = {
    task.name: task
    for task in (
        DigitsEdge,
        Cifar10LabelFlip,
        Cifar10Southwest,
        Cifar10Trigger,
        Cifar100Trigger,
        EmnistArdis,
        SentimentYl,
    )
}
"""The tasks of this package."""

REGISTRY: Registry[Task] = Registry(
    "task",
    Task,  # type: ignore[type-abstract]
    "datadefense.tasks",
    TASKS,
    task_class,
)
"""Ours, those of installed packages, and ``module:name`` of a class, an instance or a function."""

__all__ = [
    "REGISTRY",
    "TASKS",
    "Aim",
    "Cifar10LabelFlip",
    "Cifar10Southwest",
    "Cifar10Trigger",
    "Cifar100Trigger",
    "DigitsEdge",
    "EmnistArdis",
    "OwnTask",
    "Scaling",
    "SentimentYl",
    "Task",
    "TaskData",
]
