"""A result that is not like its round is the defense's fault, and is said to be."""

from dataclasses import dataclass

import pytest
import torch

from datadefense import Aggregate, Server, create, defend
from datadefense.core.defense import Combined, Rule
from datadefense.core.errors import InputError
from datadefense.core.gate import Admission
from datadefense.core.result import called, check_result
from datadefense.defenses import Pipeline
from datadefense.preaggregators.clip import Clip
from datadefense.testing.toy import TOY_DIM, toy_layout, toy_round


@dataclass(frozen=True)
class Careless(Rule):
    """Returns whatever it is told to."""

    what: str = "update"
    name = "careless"

    def combine(self, round):
        update, clients = round.updates.mean(0), round.num_clients
        return {
            "double": Combined(update.double()),
            "half": Combined(update.half(), torch.ones(clients) / clients),
            "row": Combined(update[None]),
            "weights": Combined(update, torch.ones(clients + 1)),
            "column": Combined(update, evidence={"score": torch.ones(clients, 1)}),
            "list": Combined(update, evidence={"score": [0.0] * clients}),
            "tensor": update,
            "nothing": Combined(),
        }[self.what]


@dataclass(frozen=True)
class Tensors(Careless):
    """Returns a tensor where a whole answer is wanted."""

    def aggregate(self, state, round, server):
        return round.global_params


WHO = f"defense {__name__}:Careless"


def answer(defense):
    round = toy_round(5)
    admission = Admission(round, (), toy_layout())
    return defend(defense, None, admission, round.global_params, Server())


@pytest.mark.parametrize(
    ("defense", "message"),
    [
        (Careless("double"), f"{WHO} returned float64, the round is float32"),
        (
            Careless("row"),
            f"{WHO} returned params of shape (1, {TOY_DIM}), the round's have ({TOY_DIM},)",
        ),
        (
            Careless("weights"),
            f"{WHO} must return weights as a tensor of shape (5,), one value a client, got (6,)",
        ),
        (
            Careless("column"),
            f"{WHO} must return score as a tensor of shape (5,), one value a client, got (5, 1)",
        ),
        (
            Careless("list"),
            f"{WHO} must return score as a tensor of shape (5,), one value a client, got list",
        ),
        (
            Careless("tensor"),
            "Careless.combine must return a Combined, got a Tensor: write Combined(update)",
        ),
        (Careless("nothing"), "Careless.combine gave neither an update nor weights"),
        (Tensors(), f"defense {__name__}:Tensors must return an Aggregate, got a Tensor"),
        (
            Pipeline((Clip(),), Careless("double")),
            "defense clip+careless returned float64, the round is float32",
        ),
    ],
)
def test_what_is_not_like_the_round_is_said_at_once(defense, message):
    state = defense.init(Server(), torch.zeros(TOY_DIM))
    round = toy_round(5)
    admission = Admission(round, (), toy_layout())
    with pytest.raises(InputError) as caught:
        defend(defense, state, admission, round.global_params, Server())
    assert str(caught.value) == message


def test_what_torch_widens_by_itself_is_no_fault():
    result = answer(Careless("half"))
    assert result.params.dtype == torch.float32


def test_a_model_that_is_no_tensor():
    with pytest.raises(InputError, match="fedavg must return a tensor of params, got a list"):
        check_result(create("fedavg"), Aggregate([0.0], None), toy_round(3))


def test_ours_go_by_their_names():
    assert called(create("clip+krum")) == "clip+krum"
    assert called(Careless()) == f"{__name__}:Careless"
