"""The model of a run's folder: what its checkpoint holds, or one sentence why not."""

import pytest
import torch
from tests.runs.quick import quick
from torch import nn

from datadefense.core.predictor import Layout
from datadefense.core.round_files import FileError
from datadefense.runs.final_model import run_model
from datadefense.runs.run import start

pytestmark = pytest.mark.usefixtures("own_cache")


@pytest.fixture
def run(tmp_path):
    with start(quick(defense="datadefense"), tmp_path / "run") as one:
        one.save()
        yield one


def test_the_parameters_of_the_checkpoint(run):
    params = run_model(run.folder, run.federation.layout)
    assert torch.equal(params, run.progress.params)


def test_what_is_no_model(run, tmp_path):
    layout = run.federation.layout
    with pytest.raises(FileError, match="holds no run with a checkpoint: there is no checkpoint"):
        run_model(tmp_path, layout)
    other = Layout.of_module(nn.Linear(2, 3))
    with pytest.raises(FileError, match=r"must hold 9 finite parameters.* tensor \[431080\]"):
        run_model(run.folder, other)
    path = run.folder / "checkpoint.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FileError, match="is not a readable checkpoint: "):
        run_model(run.folder, layout)
    path.write_bytes(b"nothing")
    with pytest.raises(FileError, match="is not a readable checkpoint: "):
        run_model(run.folder, layout)
