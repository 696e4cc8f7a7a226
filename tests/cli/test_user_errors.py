"""What ends in one line, and what in a traceback."""

import errno
import os

import pytest

from datadefense import FileError, SettingsError
from datadefense.cli import app
from datadefense.cli.user_errors import user_error
from datadefense.simulation.pool import WorkerError


def raising(monkeypatch, error):
    def command():
        raise error

    monkeypatch.setattr(app, "app", command)
    app.main()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (SettingsError("rounds must be >= 1, got 0"), "rounds must be >= 1, got 0"),
        (FileError("g is not a file"), "g is not a file"),
        (WorkerError("a job failed"), "a job failed"),
        (PermissionError(errno.EACCES, "Permission denied", "runs"), "denied: 'runs'"),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), "No space left on device"),
        (MemoryError(), "too little memory"),
        (RuntimeError("DefaultCPUAllocator: can't allocate memory"), "too little memory"),
    ],
)
def test_what_a_user_can_mend_is_one_line(monkeypatch, capsys, error, said):
    with pytest.raises(SystemExit) as ended:
        raising(monkeypatch, error)
    assert ended.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith("error: ")
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize(
    "error",
    [
        ValueError("not enough values to unpack (expected 2, got 1)"),
        UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
        OSError("could not get source code"),
        ConnectionError("a library's own words"),
        RuntimeError("shapes differ"),
        KeyError("params"),
    ],
)
def test_an_error_of_another_library_keeps_its_traceback(monkeypatch, error):
    assert user_error(error) is None
    with pytest.raises(type(error)) as caught:
        raising(monkeypatch, error)
    assert caught.value is error
