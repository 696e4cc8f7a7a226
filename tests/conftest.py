import logging
import os
from functools import cache
from pathlib import Path
from tempfile import gettempdir

import pytest
import torch
from hypothesis import settings

from datadefense.data import digits

settings.register_profile("default", deadline=None, max_examples=25, derandomize=True)
settings.register_profile("thorough", deadline=None, max_examples=500, print_blob=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))


@pytest.fixture(autouse=True, scope="session")
def one_thread():
    torch.set_num_threads(1)


@pytest.fixture(autouse=True, scope="session")
def digits_read_once():
    """The tables of digits are unpacked once a process, not once a run."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(digits, "_packaged", cache(digits._packaged))
        yield


@pytest.fixture(scope="session")
def warm_starts(tmp_path_factory):
    return tmp_path_factory.mktemp("warm")


@pytest.fixture
def own_cache(tmp_path_factory, warm_starts, monkeypatch):
    """A cache of this test's own, but for the warm starts: those of all tests are in it.

    A test that is about training one unlinks ``warm`` first.
    """
    folder = tmp_path_factory.mktemp("cache")
    (folder / "warm").symlink_to(warm_starts)
    monkeypatch.setenv("DATADEFENSE_CACHE", str(folder))
    return folder


@pytest.fixture
def decoded_images(tmp_path_factory, monkeypatch):
    """A cache of this test's own, but for the pictures of real data sets.

    These are decoded once on a machine: 60,000 take half a minute. A file of the cache is named by
    the digest of what it was made of.
    """
    shared = Path(gettempdir()) / f"datadefense-tests-{os.getuid()}" / "images"
    shared.mkdir(parents=True, exist_ok=True)
    folder = tmp_path_factory.mktemp("cache")
    (folder / "images").symlink_to(shared)
    monkeypatch.setenv("DATADEFENSE_CACHE", str(folder))
    return folder


@pytest.fixture
def datadefense_log(caplog):
    caplog.set_level(logging.WARNING, logger="datadefense")
    return caplog
