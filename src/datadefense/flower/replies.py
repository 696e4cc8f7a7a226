"""Replies of nodes, each checked on its own, as submissions for the gate."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from flwr.app import Message, RecordDict

from datadefense.core.errors import DataDefenseError
from datadefense.core.foreign import error_text, plain_integer, shown
from datadefense.core.gate import Submission
from datadefense.flower.arrays import read_record


class ReplyError(DataDefenseError):
    """A reply that carries an error, or content that is not a model."""


@dataclass(frozen=True, slots=True, eq=False)
class Reply:
    """A message that came, and the node that it is put down to.

    Args:
        node: whom the message that it answers had gone to; where it answers none of ours, whom it
            says it comes from.
        message: what came.
        asked: whether it answers a message of ours.
    """

    node: int
    message: Message
    asked: bool


def addresses(sent: Iterable[Message]) -> dict[str, int]:
    """Return which node each message went to, by the message's number."""
    return {message.metadata.message_id: message.metadata.dst_node_id for message in sent}


def by_node(messages: Iterable[Message], sent: Mapping[str, int]) -> list[Reply]:
    """Return the replies in the order of their nodes.

    ``sent`` tells whom each message went to: an error about a lost node names another sender.
    """
    replies: list[Reply] = []
    for message in messages:
        node = sent.get(message.metadata.reply_to_message_id)
        claimed = message.metadata.src_node_id
        replies.append(Reply(claimed if node is None else node, message, node is not None))
    return sorted(replies, key=lambda reply: plain_integer(reply.node) or 0)


def submission_of(reply: Reply, arrays_key: str, count_key: str) -> Submission:
    """Return what a node sent, decoded; whatever is wrong with it is left to the gate to say."""
    try:
        if not reply.asked:
            raise ReplyError("answers a message that was not sent in this round")
        if reply.message.has_error():
            error = reply.message.error
            raise ReplyError(f"error {shown(error.code)}: {error.reason}")
        content = reply.message.content
        return Submission(
            reply.node, _arrays(content, arrays_key), claimed_examples(content, count_key)
        )
    except ReplyError as error:
        return Submission(reply.node, error, None)
    except Exception as error:
        return Submission(reply.node, ReplyError(error_text(error)), None)


def _arrays(content: RecordDict, key: str) -> Any:
    records = content.array_records
    if key not in records:
        raise ReplyError(f"no arrays under {key!r}, there are: {sorted(records)}")
    return read_record(records[key])


def claimed_examples(content: RecordDict, key: str) -> Any:
    """Return the claimed number of examples; a float that is whole is taken as an integer."""
    found = [record[key] for record in content.metric_records.values() if key in record]
    claimed = found[0] if len(found) == 1 else None
    return int(claimed) if isinstance(claimed, float) and claimed.is_integer() else claimed
