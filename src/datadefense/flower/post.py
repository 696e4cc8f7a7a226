"""Post: replies are fetched one by one, so that no node's reply stands in the way of another's.

Flower fetches all replies at once and believes what each says about itself. There, a reply that
cannot be unpacked ends the run, and one that claims to answer another node's message takes the
place of that node's reply, which is then not waited for.
"""

import time
from collections.abc import Iterable
from itertools import count

import httpx
from flwr.app import Error, Message

from datadefense.core.foreign import error_text
from datadefense.flower.wrapped_grid import WrappedGrid

FIRST_PAUSE, LONGEST_PAUSE = 0.1, 3.0
"""Seconds between two looks for replies: short at first, then longer and longer."""
UNREADABLE = 900
"""Code of the error that stands for a reply that cannot be unpacked; none of Flower's own."""


class Post(WrappedGrid):
    """Send messages and fetch the reply to each by the number of the message.

    A reply says whom it comes from and what it answers. What we know is put in the place of both:
    which message was asked about, and which node it had gone to.
    """

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Return the replies that come in time, at most one a message; look once at least."""
        asked = list(messages)
        taken = set(self._grid.push_messages(asked))
        waiting = {
            message.metadata.message_id: message
            for message in asked
            if message.metadata.message_id in taken
        }
        ends = None if timeout is None else time.monotonic() + timeout
        replies: list[Message] = []
        for turn in count():
            for number, message in list(waiting.items()):
                if (reply := self._reply(number, message)) is not None:
                    replies.append(reply)
                    del waiting[number]
            left = LONGEST_PAUSE if ends is None else ends - time.monotonic()
            if not waiting or left <= 0:
                break
            time.sleep(min(FIRST_PAUSE * 1.5 ** min(turn, 20), LONGEST_PAUSE, left))
        return replies

    def _reply(self, number: str, message: Message) -> Message | None:
        """Return the reply to a message if it is there; one that cannot be read as an error.

        What the connection to the SuperLink raises is not the node's doing, and is passed on.
        """
        try:
            found = next(iter(self._grid.pull_messages([number])), None)
            if found is None:
                return None
            found.metadata.__dict__["_reply_to_message_id"] = number
            found.metadata.__dict__["_src_node_id"] = message.metadata.dst_node_id
            if found.has_error() or found.has_content():
                return found
            raise ValueError("neither content nor an error")
        except (httpx.HTTPError, OSError):
            raise
        except Exception as error:
            return Message(
                Error(UNREADABLE, f"cannot be read: {error_text(error)}"), reply_to=message
            )
