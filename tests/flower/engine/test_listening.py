"""How tests find out what listens where; `test_launch` asks it about a simulated run."""

import subprocess
import sys
from pathlib import Path
from uuid import uuid4

import pytest
from tests.flower.engine.listening import listening

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
