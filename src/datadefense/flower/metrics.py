"""Metrics of nodes: which of them can be averaged, and an average that never ends a run.

What a node says about its loss is a claim, and the average of claims is one too: no defense looks
at it, and one node can move it. It is there to be read, not to decide anything.
"""

import math
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from flwr.app import Message, MetricRecord, RecordDict

from datadefense.core.foreign import error_text, plain_integer
from datadefense.flower.nodes import logger
from datadefense.flower.replies import Reply, claimed_examples


def first_contents(replies: Iterable[Reply]) -> dict[int, Message]:
    """Return of each node the first reply to a message of ours that has content."""
    found: dict[int, Message] = {}
    for reply in replies:
        if reply.asked and reply.message.has_content():
            found.setdefault(reply.node, reply.message)
    return found


def agreeing(messages: Sequence[Message], count_key: str, max_examples: int) -> list[Message]:
    """Return those whose metrics have the most common form, and a count that is within bounds.

    Flower's averages of metrics raise if one reply has other names than the rest.
    """
    forms = [_form(message, count_key, max_examples) for message in messages]
    counted = Counter(form for form in forms if form is not None)
    if not counted:
        return []
    usual = counted.most_common(1)[0][0]
    return [message for message, form in zip(messages, forms, strict=True) if form == usual]


def _form(message: Message, count_key: str, max_examples: int) -> tuple[Any, ...] | None:
    """Return the names and sizes of a reply's metrics; None where they cannot be averaged."""
    try:
        return _names_and_sizes(message.content, count_key, max_examples)
    except Exception as error:
        logger.warning("metrics of a node cannot be read: %s", error_text(error))
        return None


def _names_and_sizes(
    content: RecordDict, count_key: str, max_examples: int
) -> tuple[Any, ...] | None:
    records = list(content.metric_records.items())
    count = plain_integer(claimed_examples(content, count_key))
    if len(records) != 1 or count is None or not 1 <= count <= max_examples:
        return None
    (name, record) = records[0]
    sizes: list[tuple[str, int]] = []
    for key, value in sorted(record.items()):
        values = value if isinstance(value, list) else [value]
        if not all(math.isfinite(number) for number in values):
            return None
        sizes.append((key, len(values) if isinstance(value, list) else -1))
    return name, tuple(sizes)


def averaged(what: str, average: Callable[[], Any]) -> MetricRecord | None:
    """Return what another strategy's average makes of metrics; None if it raises or makes none."""
    try:
        found = average()
        return None if found is None else MetricRecord(dict(found.items()))
    except Exception as error:
        logger.warning("%s are not averaged: %s", what, error_text(error))
        logger.debug("the average of %s raised", what, exc_info=True)
        return None
