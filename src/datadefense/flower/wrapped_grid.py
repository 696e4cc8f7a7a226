"""A grid around another one: passes on every call that a subclass does not change."""

from collections.abc import Iterable
from typing import Any

from flwr.app import Message, RecordDict
from flwr.serverapp import Grid


class WrappedGrid(Grid):
    """Leave everything to the grid within; who derives from this changes a part of it."""

    def __init__(self, grid: Grid) -> None:
        self._grid = grid

    def get_node_ids(self) -> Iterable[int]:
        """Leave that to the grid."""
        return self._grid.get_node_ids()

    def set_run(self, run: Any) -> None:
        """Leave that to the grid."""
        self._grid.set_run(run)

    @property
    def run(self) -> Any:
        """Return the grid's run."""
        return self._grid.run

    def create_message(
        self,
        content: RecordDict,
        message_type: str,
        dst_node_id: int,
        group_id: str,
        ttl: float | None = None,
    ) -> Message:
        """Leave that to the grid."""
        return self._grid.create_message(content, message_type, dst_node_id, group_id, ttl)

    def push_messages(self, messages: Iterable[Message]) -> Iterable[str]:
        """Leave that to the grid."""
        return self._grid.push_messages(messages)

    def pull_messages(self, message_ids: Iterable[str]) -> Iterable[Message]:
        """Leave that to the grid."""
        return self._grid.pull_messages(message_ids)

    def send_and_receive(
        self, messages: Iterable[Message], *, timeout: float | None = None
    ) -> Iterable[Message]:
        """Leave that to the grid."""
        return self._grid.send_and_receive(messages, timeout=timeout)
