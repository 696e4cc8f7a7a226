"""A simulated run listens on loopback only: the SuperLink, and every process of Ray."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from tests.flower.engine.listening import listening
from tests.runs.quick import quick

pytest.importorskip("flwr")
from datadefense.flower.engine.launch import run_app
from datadefense.runs.files import read_rounds

pytestmark = pytest.mark.skipif(
    not Path("/proc/net/tcp").exists(), reason=f"needs /proc, not on {sys.platform}"
)


LISTENS = """
import socket, sys
places = [(socket.AF_INET, "0.0.0.0"), (socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::")]
sockets = []
for family, address in places:
    try:
        sockets.append(socket.create_server((address, 0), family=family))
    except OSError:
        pass
print(*(one.getsockname()[1] for one in sockets), flush=True)
sys.stdin.read()
"""


def _mark(monkeypatch):
    name, value = "DATADEFENSE_TEST_MARK", uuid4().hex
    monkeypatch.setenv(name, value)
    return name, value


def test_the_test_sees_what_listens_where(monkeypatch):
    name, value = _mark(monkeypatch)
    command = [sys.executable, "-c", LISTENS]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        ports = [int(port) for port in process.stdout.readline().split()]
        found = {(str(address), port) for _, address, port in listening(f"{name}={value}")}
        process.kill()
    expected = {("0.0.0.0", ports[0]), ("127.0.0.1", ports[1])}  # noqa: S104 - to be found
    expected |= {("::", port) for port in ports[2:]}
    assert found == expected


@pytest.mark.slow
def test_a_simulated_run_listens_on_loopback_only(tmp_path, monkeypatch):
    pytest.importorskip("ray", reason="pip install 'datadefense[flower-simulation]'")
    name, value = _mark(monkeypatch)
    monkeypatch.setenv("RAY_ADDRESS", "192.0.2.1:6379")  # another's cluster is none of ours
    found = set()
    for _ in run_app(quick(rounds=3), tmp_path / "out", None, workers=2, deployment=None):
        found |= listening(f"{name}={value}")
    assert [record.round for record in read_rounds(tmp_path / "out")] == [1, 2, 3]
    for part in ("flower-superlink", "gcs_server", "raylet", "ray::ClientAppActor"):
        assert any(part in command for command, _, _ in found), part
    assert [one for one in found if not one[1].is_loopback] == []
