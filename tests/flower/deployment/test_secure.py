"""A backdoor kept out, with TLS and node keys made by the app's script; strangers stay outside."""

import subprocess
import sys

import pytest

pytest.importorskip("flwr")
from tests.flower.deployment.loopback import APP, HERE, Loopback, Tls


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    folder = tmp_path_factory.mktemp("secure")
    keys = folder / "keys"
    subprocess.run(
        [sys.executable, APP / "certificates.py", keys, "--nodes", "4"], check=True, timeout=120
    )
    assert {one.name for one in keys.iterdir() if one.stat().st_mode & 0o077} == {
        ".gitignore",
        "ca.crt",
        "server.crt",
        *(f"node{node}.pub" for node in range(4)),
    }
    with Loopback(folder, tls=Tls(keys)) as one:
        for node in range(3):
            one.flwr("supernode", "register", str(keys / f"node{node}.pub"), HERE)
        yield one


def test_an_unregistered_key_gets_nowhere_and_datadefense_keeps_the_backdoor_out(deployment):
    ids = deployment.nodes_there(0, 1, 2)
    assert None not in ids.values()
    assert deployment.nodes_there(3) == {3: None}
    assert "Failed to activate SuperNode" in deployment.nodes[3].said()
    assert deployment.nodes[3].process.returncode != 0

    outcome = deployment.run("secure", malicious=2, num_server_rounds=2)
    assert outcome.status == "finished:completed", outcome.log
    assert sorted(outcome.rounds) == [0, 1, 2]
    assert all(found["asr_percent"] < 20 for found in outcome.rounds.values()), outcome.rounds
    assert outcome.rounds[2]["ma_percent"] > outcome.rounds[0]["ma_percent"] > 80
    for line in outcome.trail:
        excluded = {one["client"]: one["verdict"] == "excluded" for one in line["clients"]}
        assert excluded == {ids[0]: False, ids[1]: False, ids[2]: True}
