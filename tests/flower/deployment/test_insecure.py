"""One SuperLink and three SuperNodes, through attacks, garbage and losses.

Each test starts what an earlier one ended, so that they may be dealt out to several workers.
"""

import os
import signal

import pytest

pytest.importorskip("flwr")
from tests.flower.deployment.loopback import Loopback, until


@pytest.fixture(scope="module")
def deployment(tmp_path_factory):
    with Loopback(tmp_path_factory.mktemp("insecure")) as one:
        yield one


def verdicts(line):
    """By node; one with less than an equal share of the weight counts, as one with all of it."""
    plain = {"reduced": "counted"}
    return {one["client"]: plain.get(one["verdict"], one["verdict"]) for one in line["clients"]}


def test_flowers_fedavg_lets_the_backdoor_in(deployment):
    """Which DataDefense keeps out, see `test_secure`."""
    deployment.nodes_there(0, 1, 2)
    outcome = deployment.run("fedavg", defense="flower-fedavg", malicious=2, num_server_rounds=1)
    assert outcome.status == "finished:completed", outcome.log
    assert outcome.rounds[0]["asr_percent"] < 20
    assert outcome.rounds[1]["asr_percent"] > 80


def test_garbage_each_round_and_a_serverapp_that_is_killed(deployment):
    """Nothing is lost: the second run goes on where the first one was."""
    ids = deployment.nodes_there(0, 1, 2)
    server, folder = deployment.begin("garbage", garbage=0, num_server_rounds=3)
    state = folder / "state.safetensors"
    until(state.exists, f"the end of the first round:\n{server.said()}")
    (app,) = deployment.processes("flwr-serverapp")
    os.kill(app, signal.SIGKILL)
    before = state.read_bytes()
    server.ends()
    assert state.read_bytes() == before

    outcome = deployment.run("garbage", garbage=0, num_server_rounds=3)
    assert outcome.status == "finished:completed", outcome.log
    assert "going on after round 1" in outcome.log
    assert sorted(outcome.rounds) == [0, 1, 2, 3]
    assert outcome.rounds[3]["ma_percent"] > outcome.rounds[0]["ma_percent"]
    assert [line["round"] for line in outcome.trail] == [1, 2, 3]
    reasons = ("values are not finite", "has shape", "num_examples must be in")
    for line, reason in zip(outcome.trail, reasons, strict=True):
        (rejected,) = (one for one in line["clients"] if one["verdict"] == "rejected")
        assert rejected["client"] == ids[0]
        assert reason in rejected["reason"]["text"]
        others = [verdict for node, verdict in verdicts(line).items() if node != ids[0]]
        assert len(others) == 2
        assert set(others) <= {
            "counted",
            "reduced",
            "excluded",
        }  # judged by the defense, not by the gate
        assert "counted" in others
        for one in line["clients"]:
            assert one["verdict"] == "counted" or one["reason"], one


def test_all_but_one_gone(deployment):
    ids = deployment.nodes_there(0, 1, 2)
    for node in (1, 2):
        deployment.nodes[node].ends()
    few = deployment.run("few", wait_seconds=1, min_nodes=2, num_server_rounds=1)
    assert few.status == "finished:failed"
    sentence = "1 nodes are connected after 1 s, min_nodes is 2: start more, or lower it"
    assert sentence in few.details
    assert f"TooFewNodesError: {sentence}" in few.log

    enough = deployment.run("enough", wait_seconds=1, min_nodes=1, num_server_rounds=1)
    assert enough.status == "finished:completed", enough.log
    (line,) = enough.trail
    assert list(verdicts(line)) == [ids[0]]


def test_a_node_killed_in_the_middle_of_a_round(deployment):
    """Last, because the SuperLink takes a minute to notice; the round goes on when it does."""
    ids = deployment.nodes_there(0, 1, 2)
    begun = deployment.begin("killed", num_server_rounds=1)
    assert deployment.nodes[2].waits_for("Receiving: train message") is not None
    deployment.nodes[2].signal(signal.SIGKILL)
    outcome = deployment.finish(begun)
    assert outcome.status == "finished:completed", outcome.log
    assert sorted(outcome.rounds) == [0, 1]
    (line,) = outcome.trail
    assert verdicts(line) == {ids[0]: "counted", ids[1]: "counted", ids[2]: "rejected"}
    (lost,) = [one for one in line["clients"] if one["verdict"] == "rejected"]
    assert "heartbeat" in lost["reason"]["text"]
    assert f"node {ids[2]} rejected: " in outcome.log
