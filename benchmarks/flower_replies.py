"""The same round for Flower: client replies with whole weights, and its shipped strategies."""
# ruff: noqa: PLC0415 - Flower is an extra: imported where it is used, after `load_flower`

import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
import torch
from torch import Tensor

from datadefense.core.gate import Gate, Submission
from datadefense.core.predictor import Layout
from datadefense.core.round import Round

if TYPE_CHECKING:
    from flwr.app import Array, ArrayRecord, Message, RecordDict
    from flwr.serverapp.strategy import Strategy

WIDTHS = (3, 64, 128, 256, 256, 512, 512, 512, 512)
"""Channels of the convolutions of VGG-9."""
LENET = ((20, 1, 5, 5), (20,), (50, 20, 5, 5), (50,), (500, 800), (500,), (10, 500), (10,))
VGG9 = (
    *(s for i, o in pairwise(WIDTHS) for s in ((o, i, 3, 3), (o,))),
    (10, 512),
    (10,),
)


def load_flower() -> None:
    """Import Flower quietly and let messages be made outside a run, or end with one line."""
    os.environ["FLWR_TELEMETRY_ENABLED"] = "0"
    try:
        from flwr.supercore.task_identity import TaskIdentity
    except ImportError as error:
        raise SystemExit(
            f"this benchmark needs Flower: pip install 'datadefense[flower]' ({error})"
        ) from error
    logging.getLogger("flwr").setLevel(logging.CRITICAL)
    TaskIdentity.run_id = TaskIdentity.node_id = TaskIdentity.task_id = 1


def split(vector: Tensor) -> list[np.ndarray]:
    """Cut a parameter vector into the arrays of the model that has that many parameters."""
    shapes = next(shapes for shapes in (LENET, VGG9) if sum(map(np.prod, shapes)) == len(vector))
    parts = torch.split(vector, [int(np.prod(shape)) for shape in shapes])
    return [part.numpy().reshape(shape) for part, shape in zip(parts, shapes, strict=True)]


def flatten(record: "ArrayRecord") -> Tensor:
    """Return the parameters in a record as one vector."""
    return torch.from_numpy(np.concatenate(record.to_numpy_ndarrays(), axis=None))


@dataclass(frozen=True, slots=True, eq=False)
class FlowerRound:
    """Each client's serialised weights and number of examples."""

    arrays: "tuple[dict[str, Array], ...]"
    num_examples: tuple[int, ...]

    @classmethod
    def of(cls, round: Round) -> "FlowerRound":
        """Serialise the weights (global + update) of a round's clients."""
        from flwr.app import ArrayRecord

        records = [ArrayRecord(split(round.global_params + update)) for update in round.updates]
        return cls(tuple(dict(record) for record in records), tuple(round.num_examples.tolist()))

    def replies(self) -> "list[Message]":
        """Make new messages around the same bytes: some strategies empty what they are given."""
        from flwr.app import ArrayRecord, Message, MessageType, MetricRecord, RecordDict

        return [
            Message(
                RecordDict(
                    {"arrays": ArrayRecord(arrays), "metrics": MetricRecord({"num-examples": n})}
                ),
                dst_node_id=1,
                message_type=MessageType.TRAIN,
            )
            for arrays, n in zip(self.arrays, self.num_examples, strict=True)
        ]

    def asked(self, strategy: "Strategy", global_params: Tensor) -> "list[Message]":
        """Let a strategy choose all nodes for a round; return what it would send them."""
        from flwr.app import ArrayRecord, ConfigRecord

        messages = strategy.configure_train(
            1,
            ArrayRecord(split(global_params)),
            ConfigRecord(),
            _AllThere(len(self.arrays)),
        )
        found = list(messages)
        for number, message in enumerate(found):
            message.metadata.__dict__["_message_id"] = str(number)
        return found

    def answers(self, asked: "list[Message]") -> "list[Message]":
        """Return what the nodes reply to these messages; new messages around the same bytes."""
        from flwr.app import ArrayRecord, Message, MetricRecord, RecordDict

        return [
            Message(
                RecordDict(
                    {"arrays": ArrayRecord(arrays), "metrics": MetricRecord({"num-examples": n})}
                ),
                reply_to=message,
            )
            for message, arrays, n in zip(asked, self.arrays, self.num_examples, strict=True)
        ]


@dataclass(frozen=True, slots=True)
class _AllThere:
    """As much of a grid as choosing nodes needs."""

    count: int

    def get_node_ids(self) -> list[int]:
        return list(range(1, self.count + 1))


def admit(replies: "list[Message]", global_params: Tensor) -> Round:
    """Read replies into a round through our gate: the work that Flower's times include."""
    named = {str(i): torch.from_numpy(array) for i, array in enumerate(split(global_params))}
    gate = Gate(Layout.of_state_dict(named), sends="models")
    submissions = (
        Submission(
            client,
            {name: array.numpy() for name, array in reply.content.array_records["arrays"].items()},
            reply.content.metric_records["metrics"]["num-examples"],
        )
        for client, reply in enumerate(replies)
    )
    round = gate.admit(1, global_params, submissions, expected=len(replies)).round
    if round is None or round.num_clients < len(replies):
        raise ValueError("the gate turned a reply of the benchmark away")
    return round


def strategies(num_clients: int, num_malicious: Callable[[str], int]) -> "dict[str, Strategy]":
    """Return Flower's strategies under the names of our rules."""
    from flwr.serverapp.strategy import Bulyan, FedAvg, FedMedian, FedTrimmedAvg, Krum, MultiKrum

    chosen = num_clients - num_malicious("multi-krum")
    return {
        "fedavg": FedAvg(),
        "krum": Krum(num_malicious_nodes=num_malicious("krum")),
        "multi-krum": MultiKrum(
            num_malicious_nodes=num_malicious("multi-krum"), num_nodes_to_select=chosen
        ),
        "bulyan": Bulyan(num_malicious_nodes=num_malicious("bulyan")),
        "trimmed-mean": FedTrimmedAvg(beta=num_malicious("trimmed-mean") / num_clients),
        "median": FedMedian(),
    }


def bulyan_of(chosen: Tensor) -> "Strategy":
    """Return Flower's Bulyan with its choice of clients replaced by the marked ones."""
    from flwr.serverapp.strategy import Bulyan

    clients = chosen.nonzero().flatten().tolist()

    def choose(contents: "list[RecordDict]", _f: int, _count: int) -> "list[RecordDict]":
        return [contents[client] for client in clients]

    num_malicious = (len(chosen) - len(clients)) // 2
    return Bulyan(num_malicious_nodes=num_malicious, selection_rule=choose)
