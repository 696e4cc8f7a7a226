"""A grid without a network: nodes are functions from the model they get to what they reply."""

import itertools
import os
from types import SimpleNamespace

import numpy as np
import pytest

os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
pytest.importorskip("flwr")
from flwr.app import ArrayRecord, Error, Message, MetricRecord, RecordDict
from flwr.serverapp import Grid
from flwr.supercore.task_identity import TaskIdentity

TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1


def reply(message, arrays, count=10, **metrics):
    """A reply with a model, a claimed number of examples and metrics."""
    content = RecordDict(
        {
            "arrays": arrays if isinstance(arrays, ArrayRecord) else record(arrays),
            "metrics": MetricRecord({"num-examples": count, **metrics}),
        }
    )
    return Message(content, reply_to=message)


def record(arrays):
    return ArrayRecord({name: _array(value) for name, value in arrays.items()})


def _array(value):
    from flwr.app import Array

    return value if isinstance(value, Array) else Array(np.asarray(value))


def model_in(message):
    return {name: array.numpy() for name, array in message.content["arrays"].items()}


def shifted(by, count=10, **metrics):
    """A node that adds ``by`` to every value."""

    def node(message):
        return reply(
            message,
            {k: v + v.dtype.type(by) for k, v in model_in(message).items()},
            count,
            **metrics,
        )

    return node


def failing(code=2, reason="out of order"):
    """A node whose app raised."""
    return lambda message: Message(Error(code, reason), reply_to=message)


class FakeGrid(Grid):
    """Nodes by number; one that is None is connected and never answers.

    A node returns its reply, or a function that the grid calls when the reply is fetched. ``app``
    is the name of the app that runs; None is a grid that knows of no run.
    """

    def __init__(self, nodes, app=None):
        self.app = app
        self.nodes, self._ids = dict(nodes), itertools.count(1)
        self.asked, self.rounds, self.letters = [], [], {}

    def set_run(self, run):
        raise NotImplementedError

    @property
    def run(self):
        run = None if self.app is None else SimpleNamespace(fab_id=self.app)
        return SimpleNamespace(**vars(run))  # as Flower's own does: a TypeError without a run

    def create_message(self, *_):
        raise NotImplementedError

    def get_node_ids(self):
        return list(self.nodes)

    def push_messages(self, messages):
        numbers = []
        for message in messages:
            numbers.append(str(next(self._ids)))
            message.metadata.__dict__["_message_id"] = numbers[-1]
            self.note(message)
            node = self.nodes.get(message.metadata.dst_node_id)
            if node is not None:
                self.letters[numbers[-1]] = node(message)
        return numbers

    def note(self, message):
        self.asked.append(message)
        self.rounds.append(message.content["config"]["server-round"])

    def pull_messages(self, message_ids):
        found = [self.letters.pop(one) for one in message_ids if one in self.letters]
        return [letter() if callable(letter) else letter for letter in found]

    def send_and_receive(self, messages, *, timeout=None):
        return self.pull_messages(self.push_messages(messages))
