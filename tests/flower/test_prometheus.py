"""What a dashboard is told: counts that agree with the audit trail, and no names of nodes."""

import json
import socket
import urllib.request

import pytest
from tests.flower.test_strategy import HONEST, nan, started

pytest.importorskip("prometheus_client", reason="pip install 'datadefense[prometheus]'")
from datadefense.flower.prometheus import PrometheusMetrics


def test_counts_agree_with_the_trail(tmp_path):
    metrics = PrometheusMetrics()
    started({**HONEST, 9: nan}, rounds=3, tell=metrics, folder=tmp_path, defense="multi-krum")
    lines = [json.loads(line) for line in (tmp_path / "audit.jsonl").read_text().splitlines()]
    for verdict in ("counted", "reduced", "excluded", "voted", "rejected"):
        found = [[n["verdict"] for n in line["clients"]].count(verdict) for line in lines]
        labels = {"verdict": verdict}
        read = metrics.registry.get_sample_value
        assert read("datadefense_round_nodes", labels) == found[-1]
        assert read("datadefense_updates_total", labels) == sum(found)
    assert read("datadefense_round") == 3
    assert read("datadefense_held_rounds_total") == 0
    assert 0 < read("datadefense_greatest_weight") <= 1
    assert read("datadefense_aggregation_seconds") > 0


def test_rounds_that_leave_the_model_are_counted():
    metrics = PrometheusMetrics()
    started({1: nan, 2: nan, 3: nan}, rounds=2, tell=metrics)
    assert metrics.registry.get_sample_value("datadefense_held_rounds_total") == 2


def test_it_answers_over_http_without_naming_nodes():
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    metrics = PrometheusMetrics().serve(port)
    started({node * 1000003: one for node, one in HONEST.items()}, tell=metrics)
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text = answer.read().decode()
    assert "datadefense_round 1.0" in text
    assert "1000003" not in text


def test_a_dashboard_that_fails_does_not_end_the_run(caplog):
    def broken(_line):
        raise OSError("no dashboard today")

    caplog.set_level("ERROR", "flwr")
    _, result = started(HONEST, rounds=2, tell=broken)
    assert len(result.train_metrics_clientapp) == 2
    assert "could not be told" in caplog.text
