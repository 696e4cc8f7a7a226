"""Lines of the trail: JSON that any reader takes, whatever a defense computes."""

import json
from dataclasses import dataclass
from typing import ClassVar

import pytest
import torch
from tests.flower.fake_grid import shifted
from tests.flower.test_strategy import HONEST, started

from datadefense import Combined, Promise, Round, Rule
from datadefense.flower.audit import append_line


@dataclass(frozen=True, slots=True)
class Odd(Rule):
    """An average whose evidence is not finite."""

    name: ClassVar[str] = "odd"
    promises: ClassVar[Promise] = Promise.SYMMETRIC

    def combine(self, round: Round) -> Combined:
        weights = torch.full((round.num_clients,), 1 / round.num_clients)
        odd = torch.full((round.num_clients,), torch.nan)
        odd[0] = torch.inf
        return Combined(weights @ round.updates, weights, {"score": odd}, {"worst": float("-inf")})


def refuse(word):
    raise ValueError(f"{word} is no JSON")


def test_what_is_not_finite_is_null_or_left_out(tmp_path):
    told = []
    started(HONEST, Odd(), folder=tmp_path, tell=told.append)
    (line,) = (
        json.loads(line, parse_constant=refuse)
        for line in (tmp_path / "audit.jsonl").read_text().splitlines()
    )
    assert [node["weight"] for node in line["clients"]] == pytest.approx([0.2] * 5)
    assert not any("evidence" in node for node in line["clients"])
    assert line["report"]["worst"] is None
    assert told[0]["clients"] == line["clients"]


def test_a_line_that_is_no_json_is_not_written(tmp_path):
    with pytest.raises(ValueError, match="not JSON compliant"):
        append_line(tmp_path / "trail", {"round": float("nan")})
    assert not (tmp_path / "trail").exists()


def test_the_greatest_id_of_a_node_is_written_as_it_is(tmp_path):
    """Flower's ids are unsigned numbers of 64 bits."""
    ids = [1, 2**63, 2**64 - 1]
    _, result = started({one: shifted(0.1) for one in ids}, folder=tmp_path)
    (line,) = map(json.loads, (tmp_path / "audit.jsonl").read_text().splitlines())
    assert [node["client"] for node in line["clients"]] == ids
    assert [node["verdict"] for node in line["clients"]] == ["counted"] * 3
    assert result.train_metrics_clientapp[1]["defense-nodes"] == ids
