import os

import pytest

from datadefense.data.errors import DataError
from datadefense.data.file_content import opened, read_at_most


def test_a_file_of_the_right_size(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    assert read_at_most(path, 3) == b"abc"
    with pytest.raises(DataError, match="file has 3 bytes, more than the 2 that are read"):
        read_at_most(path, 2)


def test_a_file_that_grows_after_it_was_opened_is_not_read_whole(tmp_path, monkeypatch):
    path = tmp_path / "file"
    path.write_bytes(b"abc")
    facts = os.fstat(os.open(path, os.O_RDONLY))
    path.write_bytes(b"x" * 10_000)
    monkeypatch.setattr(os, "fstat", lambda number: facts)
    with pytest.raises(DataError, match="file has more than the 5 bytes that are read"):
        read_at_most(path, 5)


def test_what_is_no_file_is_not_waited_for(tmp_path):
    os.mkfifo(tmp_path / "pipe")
    for name in ("pipe", ".", "gone", "gone/file"):
        with pytest.raises(DataError, match="is not a file"), opened(tmp_path / name, 10):
            pass
    with pytest.raises(DataError, match="is not a file"):
        read_at_most(tmp_path / "pipe", 10)
