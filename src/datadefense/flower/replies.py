"""Replies of nodes, each checked on its own, as submissions for the gate."""

import math
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from flwr.app import Message, RecordDict

from datadefense.flower.arrays import read_record
from datadefense.gate import Submission


class ReplyError(Exception):
    """A reply that carries an error, or content that is not a model."""


def submission_of(
    reply: Message, sent: Mapping[str, int], arrays_key: str, count_key: str
) -> Submission:
    """Return what a node sent, decoded; whatever is wrong with it is left to the gate to say.

    ``sent`` tells whom each message went to: an error about a lost node names another sender.
    """
    node = sent.get(reply.metadata.reply_to_message_id, reply.metadata.src_node_id)
    if reply.has_error():
        return Submission(node, ReplyError(f"error {reply.error.code}: {reply.error.reason}"), None)
    try:
        content = reply.content
        return Submission(node, _arrays(content, arrays_key), _count(content, count_key))
    except Exception as error:
        return Submission(node, ReplyError(f"{type(error).__name__}: {error}"), None)


def _arrays(content: RecordDict, key: str) -> Any:
    records = content.array_records
    if key not in records:
        return ReplyError(f"no arrays under {key!r}, there are: {sorted(records)}")
    return read_record(records[key])


def _count(content: RecordDict, key: str) -> Any:
    """Return the claimed number of examples; a float that is whole is taken as an integer."""
    found = [record[key] for record in content.metric_records.values() if key in record]
    claimed = found[0] if len(found) == 1 else None
    return int(claimed) if isinstance(claimed, float) and claimed.is_integer() else claimed


def agreeing(contents: Sequence[RecordDict], count_key: str) -> list[RecordDict]:
    """Return those whose metrics have the most common names and finite values.

    Flower's averages of metrics raise if one reply has other names than the rest.
    """
    shapes = [_shape(content, count_key) for content in contents]
    counted = Counter(shape for shape in shapes if shape is not None)
    if not counted:
        return []
    usual = counted.most_common(1)[0][0]
    return [one for one, shape in zip(contents, shapes, strict=True) if shape == usual]


def _shape(content: RecordDict, count_key: str) -> tuple[Any, ...] | None:
    records = list(content.metric_records.values())
    if len(records) != 1 or count_key not in records[0]:
        return None
    sizes: list[tuple[str, int]] = []
    for name, value in sorted(records[0].items()):
        values = value if isinstance(value, list) else [value]
        if not all(math.isfinite(one) for one in values):
            return None
        sizes.append((name, len(values) if isinstance(value, list) else -1))
    weight = records[0][count_key]
    return tuple(sizes) if isinstance(weight, int | float) and weight > 0 else None


def contents_of(replies: Iterable[Message]) -> dict[int, RecordDict]:
    """Return the content of each node's first reply that has one."""
    found: dict[int, RecordDict] = {}
    for reply in replies:
        if not reply.has_error():
            found.setdefault(reply.metadata.src_node_id, reply.content)
    return found
