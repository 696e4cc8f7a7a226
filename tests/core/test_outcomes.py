import torch
from tests.strategies import as_round

from datadefense import Aggregate, Server, create
from datadefense.core.outcomes import verdicts


def words(name, rows, **settings):
    round = as_round(torch.tensor(rows))
    defense = create(name, settings)
    return verdicts(defense.aggregate(defense.init(Server(), rows), round, Server()), round)


ROWS = [[0.0, 1.0], [0.1, 1.0], [0.0, 1.1], [0.1, 1.1], [30.0, 40.0], [0.0, 0.9], [0.1, 0.9]]


def test_words():
    assert words("fedavg", ROWS) == ["kept"] * 7
    assert words("median", ROWS) == ["in the vote"] * 7
    assert words("multi-krum", ROWS)[4] == "excluded"
    assert words("bulyan", ROWS)[4] == "excluded"
    assert words("ndc", ROWS)[4] == "clipped to 4 %"
    assert words("rfa", ROWS)[4] == "down-weighted"


def test_small_and_large_clips():
    rows = [[0.0, 2.01], [0.0, 1.0], [3e4, 0.0]]
    assert words("ndc", rows) == ["clipped to 100 %", "kept", "clipped to < 1 %"]


def test_many_examples_are_no_fault():
    round = as_round(torch.randn(6, 3), counts=[500, 10, 10, 10, 10, 10])
    defense = create("multi-krum")
    result = defense.aggregate(None, round, Server())
    assert set(verdicts(result, round)) == {"kept", "excluded"}


def test_weights_decide():
    round = as_round(torch.zeros(2, 1))
    result = Aggregate(torch.zeros(1), None, torch.tensor([0.0, 1.0]))
    assert verdicts(result, round) == ["excluded", "kept"]
