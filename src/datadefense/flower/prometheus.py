"""Prometheus: the figures of each round of a deployment, for a dashboard.

>>> from datadefense.flower import DefendedStrategy
>>> from datadefense.flower.prometheus import PrometheusMetrics
>>> strategy = DefendedStrategy("median", tell=PrometheusMetrics())  # and .serve(port=9464)

Nodes are counted, not named: node ids come from the network, and a label for each would let
strangers fill the memory of whoever collects.
"""

from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, start_http_server

from datadefense.core.outcomes import Verdict


class PrometheusMetrics:
    """Gauges and counters that follow the audit trail; a registry of its own unless given one."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self.registry = CollectorRegistry() if registry is None else registry
        self._round = Gauge("datadefense_round", "last round", registry=self.registry)
        self._nodes = Gauge(
            "datadefense_round_nodes",
            "nodes of the last round by what became of their update",
            ["verdict"],
            registry=self.registry,
        )
        self._all = Counter(
            "datadefense_updates",
            "updates since the start by what became of them",
            ["verdict"],
            registry=self.registry,
        )
        self._held = Counter(
            "datadefense_held_rounds",
            "rounds that left the model as it was",
            registry=self.registry,
        )
        self._weight = Gauge(
            "datadefense_greatest_weight",
            "greatest weight of one node in the last round, 0 to 1",
            registry=self.registry,
        )
        self._seconds = Gauge(
            "datadefense_aggregation_seconds",
            "seconds from the replies to the new model, last round",
            registry=self.registry,
        )

    def serve(self, port: int = 9464, address: str = "127.0.0.1") -> "PrometheusMetrics":
        """JobResult on http://address:port/metrics from a thread of its own; return the metrics."""
        start_http_server(port, addr=address, registry=self.registry)
        return self

    def __call__(self, line: dict[str, Any]) -> None:
        """Take in a line of the audit trail."""
        self._round.set(line["round"])
        verdicts = [client["verdict"] for client in line["clients"]]
        for verdict in map(str, Verdict):
            self._nodes.labels(verdict).set(verdicts.count(verdict))
            self._all.labels(verdict).inc(verdicts.count(verdict))
        if "held" in line["report"]:
            self._held.inc()
        weights = [client.get("weight") or 0.0 for client in line["clients"]]
        self._weight.set(max(weights, default=0.0))
        self._seconds.set(line["cost"]["seconds"])
