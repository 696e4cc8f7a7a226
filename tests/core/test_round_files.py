"""Clients' files: any header, and files that change while they are read."""

import os

import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.test_aggregate import folder
from tests.cli.test_hostile_files import ENTRY, file_of

from datadefense import Gate, Layout
from datadefense.core.round_files import ClientFile, read_submissions, read_tensors
from datadefense.core.tensor_file import TensorFile

__all__ = ["folder"]

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3)
    ),
    max_leaves=6,
)
NAMES = st.sampled_from(["__metadata__", "w", "dtype", "shape", "data_offsets", "num_examples"])


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(NAMES, JSON | st.just(ENTRY) | st.dictionaries(NAMES, JSON), max_size=3))
def test_any_header_is_read_or_refused(tmp_path_factory, header):
    path = tmp_path_factory.getbasetemp() / "any.safetensors"
    path.write_bytes(file_of(header))
    model = TensorFile({"w": torch.zeros(8)}, {}, 64)
    clients = [ClientFile(path, path.stat().st_size)]
    layout = Layout.of_state_dict(model.tensors)
    submissions = read_submissions(clients, model, layout, 1)
    admission = Gate(layout).admit(1, torch.zeros(8), submissions, expected=1)
    assert (admission.round is None) == (len(admission.rejected) == 1)


def test_a_file_that_grows_after_its_check_is_not_read_further(folder, monkeypatch):
    """The file gets a terabyte long once its size was asked for."""
    path = folder / "clients" / "c1.safetensors"
    original = os.fstat
    grown = []

    def fstat(descriptor):
        status = original(descriptor)
        if status.st_ino == path.stat().st_ino:
            os.truncate(path, 10**12)
            grown.append(descriptor)
        return status

    monkeypatch.setattr(os, "fstat", fstat)
    file = read_tensors(path, 1000)
    assert len(grown) == 1
    assert torch.equal(file.tensors["layer.weight"], torch.full((2, 3), 1.0))
