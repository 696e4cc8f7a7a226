"""A task by the name of an instance, or of a function that makes one: ``my_module:my_task``."""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch

from datadefense.core.prototype import class_like
from datadefense.core.settings import SettingsError
from datadefense.tasks.base import Task
from datadefense.tasks.own import OwnTask


def task_class(found: object, module: str, name: str) -> type[Task]:
    """Return the class that a task, or a function without arguments that makes one, stands for.

    A function is called once in a process; its data is read once.
    """
    if isinstance(found, Task):
        try:
            return _around(found, module, name)
        except TypeError as error:
            raise SettingsError(f"fields of {module}:{name} must be hashable: {error}") from error
    if not callable(found):
        raise SettingsError(f"{module}:{name} must be a task or a function, got {found!r:.80}")
    return _made_by(found, module, name)


@cache
def _made_by(function: Callable[[], Any], module: str, name: str) -> type[Task]:
    try:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            made = function()
    except Exception as error:
        said = (
            str(error) if isinstance(error, SettingsError) else f"{type(error).__name__}: {error}"
        )
        raise SettingsError(f"{module}:{name}() makes no task: {said}") from error
    if not isinstance(made, Task):
        raise SettingsError(f"{module}:{name}() must return a task, got a {type(made).__name__}")
    return class_like(made, module, name, _constants(made))


@cache
def _around(task: Task, module: str, name: str) -> type[Task]:
    return class_like(task, module, name, _constants(task))


def _constants(task: Task) -> dict[str, object]:
    return {"presets": task.own_presets()} if isinstance(task, OwnTask) else {}
