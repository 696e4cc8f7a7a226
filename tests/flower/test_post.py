"""Replies fetched one by one: what a node makes of its own does not touch another's."""

import httpx
import numpy as np
import pytest
from flwr.app import ConfigRecord, Message, MessageType, RecordDict
from tests.flower.fake_grid import FakeGrid, record, shifted
from tests.flower.test_strategy import HONEST, START, started, values

from datadefense.flower import DefendedStrategy
from datadefense.flower.post import UNREADABLE, Post


def unreadable(error):
    """A node whose reply raises in Flower when it is unpacked."""

    def node(_):
        def letter():
            raise error

        return letter

    return node


def claiming(other, node):
    """A node that says it answers the message of another."""

    def claims(message):
        answer = shifted(50, count=999_999, loss=1.0)(message)
        answer.metadata.__dict__["_reply_to_message_id"] = str(other)
        answer.metadata.__dict__["_src_node_id"] = node
        return answer

    return claims


def emptied(message):
    answer = shifted(0)(message)
    answer.__dict__["_content"] = None
    return answer


HOSTILE = {
    "unreadable": unreadable(KeyError("no\nsuch\x1b class")),
    "no child": unreadable(IndexError("list index out of range")),
    "no recursion": unreadable(RecursionError()),
    "not a message": lambda _: RecordDict(),
    "nothing": emptied,
}


@pytest.mark.parametrize("node", HOSTILE.values(), ids=list(HOSTILE))
def test_a_reply_that_cannot_be_unpacked_is_an_error_of_its_node(node):
    _, without = started(HONEST, "median", rounds=2)
    _, result = started({0: node, **HONEST}, "median", rounds=2)
    assert np.array_equal(values(result)["w"], values(without)["w"])
    assert result.train_metrics_clientapp[2]["defense-rejected"] == 1
    assert result.evaluate_metrics_clientapp[2] == without.evaluate_metrics_clientapp[2]


def test_nobody_answers_for_another():
    """Node 0 is asked first; it claims to be node 3, and to answer what node 3 was asked."""
    for claimed in range(10):
        _, result = started({0: claiming(claimed, 3), **HONEST}, "median")
        metrics = result.train_metrics_clientapp[1]
        assert metrics["defense-admitted"] == 6
        assert metrics["defense-rejected"] == 0


def message_to(node):
    content = RecordDict({"arrays": record(START)})
    return Message(content, dst_node_id=node, message_type=MessageType.TRAIN)


class Quiet(FakeGrid):
    def note(self, message):
        self.asked.append(message)


def test_each_reply_is_put_down_to_the_message_that_was_asked_about():
    grid = Quiet({1: claiming("9", 8), 2: shifted(0), 3: unreadable(ValueError("a\x07b"))})
    one, two, three = Post(grid).send_and_receive([message_to(n) for n in (1, 2, 3)], timeout=0)
    assert [reply.metadata.src_node_id for reply in (one, two, three)] == [1, 2, 3]
    assert [reply.metadata.reply_to_message_id for reply in (one, two, three)] == ["1", "2", "3"]
    assert three.error.code == UNREADABLE
    assert three.error.reason == "cannot be read: ValueError: a?b"


@pytest.mark.parametrize("error", [httpx.ConnectError("gone"), ConnectionResetError("gone")])
def test_a_lost_superlink_is_nobodys_reply(error):
    with pytest.raises(type(error), match="gone"):
        Post(Quiet({1: unreadable(error)})).send_and_receive([message_to(1)], timeout=0)


def test_replies_that_come_late_are_waited_for(monkeypatch):
    grid, pauses = Quiet({1: shifted(0), 2: None}), []

    def sleep(seconds):
        pauses.append(seconds)
        if len(pauses) == 12:
            grid.letters["2"] = shifted(0)(grid.asked[1])

    monkeypatch.setattr("datadefense.flower.post.time.sleep", sleep)
    replies = Post(grid).send_and_receive([message_to(1), message_to(2)], timeout=600)
    assert [reply.metadata.src_node_id for reply in replies] == [1, 2]
    assert pauses == sorted(pauses)
    assert (pauses[0], pauses[-1]) == (0.1, 3.0)


def test_the_time_to_wait_is_kept(monkeypatch):
    now = [0.0]
    monkeypatch.setattr("datadefense.flower.post.time.monotonic", lambda: now[0])
    monkeypatch.setattr(
        "datadefense.flower.post.time.sleep", lambda seconds: now.__setitem__(0, now[0] + seconds)
    )
    assert Post(Quiet({1: None})).send_and_receive([message_to(1)], timeout=20) == []
    assert now[0] == 20


def test_a_strategy_that_is_driven_by_hand_rejects_answers_to_nothing():
    strategy = DefendedStrategy("fedavg", wait_seconds=0)
    grid = FakeGrid(HONEST)
    for server_round in (1, 2):
        messages = list(strategy.configure_train(server_round, record(START), ConfigRecord(), grid))
        replies = list(grid.send_and_receive(messages))
        replies[0].metadata.__dict__["_reply_to_message_id"] = "never"
        arrays, metrics = strategy.aggregate_train(server_round, [*replies, replies[1]])
        assert arrays is not None
        assert (metrics["defense-admitted"], metrics["defense-rejected"]) == (4, 2)
        assert strategy.aggregate_evaluate(server_round, replies) is None
