import logging

import pytest
import torch
from hypothesis import settings

settings.register_profile("default", deadline=None, max_examples=60, derandomize=True)
settings.load_profile("default")


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture
def datadefense_log(caplog):
    caplog.set_level(logging.WARNING, logger="datadefense")
    return caplog
