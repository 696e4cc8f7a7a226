"""One base for every error of ours, and the built-in one beside it."""

import importlib
import inspect
import pkgutil

import pytest

import datadefense
from datadefense import DataDefenseError


def modules():
    for found in pkgutil.walk_packages(datadefense.__path__, "datadefense."):
        if found.name.endswith("__main__"):
            continue
        try:
            yield importlib.import_module(found.name)
        except ImportError as error:  # an extra that is not installed
            if (error.name or "datadefense").startswith("datadefense"):
                raise


def test_every_error_that_the_package_defines_has_the_one_base():
    found = {
        value
        for module in modules()
        for value in vars(module).values()
        if inspect.isclass(value)
        and issubclass(value, BaseException)
        and not issubclass(value, Warning)
        and value.__module__.startswith("datadefense.")
    }
    assert len(found) >= 15
    assert [kind.__qualname__ for kind in found if not issubclass(kind, DataDefenseError)] == []


@pytest.mark.parametrize(
    "name",
    [
        "InputError",
        "SettingsError",
        "FileError",
        "DataError",
        "StateError",
        "TooFewClientsError",
        "UnhandledBuffersError",
        "WrongKindError",
    ],
)
def test_public_errors_are_still_value_errors(name):
    kind = getattr(datadefense, name)
    assert issubclass(kind, DataDefenseError)
    assert issubclass(kind, ValueError)
    assert name in datadefense.__all__


def test_what_the_library_refuses_is_caught_by_the_base():
    import torch

    with pytest.raises(DataDefenseError, match="did you mean 'krum'"):
        datadefense.create("krumm")
    with pytest.raises(DataDefenseError, match="bulyan needs n >= 4f"):
        datadefense.create("bulyan").check_clients(3)
    with pytest.raises(DataDefenseError, match="one label an input: got 2 inputs, 3 labels"):
        datadefense.Examples(torch.zeros(2, 1), torch.zeros(3, dtype=torch.int64))
    with pytest.raises(DataDefenseError, match="the model has no parameters"):
        datadefense.Layout.of_module(torch.nn.ReLU())
    with pytest.raises(DataDefenseError, match="needs a model and a defense set"):
        datadefense.create("datadefense").init(datadefense.Server(), torch.zeros(3))
