"""A hundred nodes in one round of Flower's simulation runtime, and what aggregating them costs."""

from importlib.util import find_spec

import pytest

pytest.importorskip("flwr")
from tests.flower.deployment.loopback import Loopback


@pytest.mark.skipif(
    find_spec("ray") is None,
    reason="the simulation runtime needs ray: pip install 'datadefense[flower-simulation]'",
)
def test_a_hundred_nodes_one_of_them_malicious(tmp_path):
    with Loopback(tmp_path, simulation=True) as deployment:
        outcome = deployment.run(
            "hundred",
            "--federation-config",
            "num-supernodes=100 client-resources-num-cpus=1 init-args-num-cpus=2",
            malicious=7,
            nodes=100,
            num_server_rounds=1,
        )
    assert outcome.status == "finished:completed", outcome.log
    assert outcome.rounds[1]["asr_percent"] < 20
    assert outcome.rounds[1]["ma_percent"] > 80
    (line,) = outcome.trail
    assert len(line["clients"]) == 100
    (excluded,) = (one for one in line["clients"] if one["verdict"] == "excluded")
    assert excluded["num_examples"] == 166
    assert 0 < line["cost"]["seconds"] < 120
    assert 100 < line["cost"]["peak_memory_mb"] < 4000
    assert "defense-seconds" in outcome.log
