"""Metrics that a strategy reports of a round: the inner strategy's averages and the defense's."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

from flwr.app import MetricRecord
from flwr.serverapp.strategy import Strategy

from datadefense.core.defend import Defended
from datadefense.core.outcomes import Verdict
from datadefense.core.round import ClientId
from datadefense.flower.metrics import agreeing, averaged, first_contents
from datadefense.flower.nodes import logger
from datadefense.flower.replies import Reply


@dataclass(frozen=True, slots=True, eq=False)
class ReportedMetrics:
    """Averages by the inner strategy, which may fail to make one.

    Args:
        inner: the strategy whose averages of metrics are used.
        count_key: name under which a node says its number of examples.
        max_examples: greatest number of examples that a node may claim.
    """

    inner: Strategy
    count_key: str
    max_examples: int

    def of_training(self, replies: list[Reply], result: Defended[Any]) -> MetricRecord:
        """Return the metrics of those that the gate admitted, and what the defense did."""
        verdicts = [outcome.verdict for outcome in result.outcomes]
        admitted = [
            outcome.client for outcome in result.outcomes if outcome.verdict is not Verdict.REJECTED
        ]
        metrics = self._averaged_of(replies, set(admitted)) or MetricRecord()
        metrics["defense-admitted"] = len(admitted)
        metrics["defense-rejected"] = verdicts.count(Verdict.REJECTED)
        if admitted:
            metrics["defense-excluded"] = verdicts.count(Verdict.EXCLUDED)
        if result.weights is not None:
            metrics["defense-weights"] = [float(weight) for weight in result.weights]
            metrics["defense-nodes"] = [int(node) for node in admitted]
        return metrics

    def of_evaluation(self, index: int, replies: list[Reply]) -> MetricRecord | None:
        """Return the average of the evaluations that agree in form; None if there is none."""
        contents = list(first_contents(replies).values())
        agreed = agreeing(contents, self.count_key, self.max_examples)
        if len(agreed) < len(replies):
            logger.warning(
                "round %d: %d of %d evaluations are left out: an error, another form than the "
                "rest, or a count of examples beyond 1..%d",
                index,
                len(replies) - len(agreed),
                len(replies),
                self.max_examples,
            )
        return averaged(
            f"evaluations of round {index}",
            lambda: self.inner.aggregate_evaluate(index, agreed),
        )

    def _averaged_of(
        self, replies: list[Reply], admitted: Collection[ClientId]
    ) -> MetricRecord | None:
        average = getattr(self.inner, "train_metrics_aggr_fn", None)
        messages = [
            message for node, message in first_contents(replies).items() if node in admitted
        ]
        agreed = agreeing(messages, self.count_key, self.max_examples)
        if average is None or not agreed:
            return None
        contents = [message.content for message in agreed]
        return averaged("metrics of training", lambda: average(contents, self.count_key))
