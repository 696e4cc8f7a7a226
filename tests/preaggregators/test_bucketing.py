from dataclasses import replace

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds

from datadefense import Server, create
from datadefense.core.defense import TooFewClientsError
from datadefense.preaggregators import Bucketing
from datadefense.preaggregators.bucketing import drawn_order


@given(rounds(), st.integers(1, 5), st.integers(0, 3))
def test_it_is_the_slow_one(round, size, seed):
    server = Server(seed=seed)
    made = Bucketing(bucket_size=size).prepare(None, round, server)
    order = drawn_order(round, server, "bucketing").tolist()
    assert sorted(order) == list(range(round.num_clients))
    wanted = torch.tensor(oracles.bucket_rows(round.updates.tolist(), order, size))
    assert torch.allclose(made.round.updates, wanted, atol=1e-5)
    assert len(wanted) == Bucketing(bucket_size=size).num_rows(round.num_clients)


def test_every_client_is_in_one_bucket_and_counts_in_it_alike():
    round = as_round(torch.randn(7, 3), counts=[1, 2, 3, 4, 5, 6, 7])
    made = Bucketing(bucket_size=3).prepare(None, round, Server())
    assert made.origin.sum(1).tolist() == pytest.approx([1, 1, 1])
    assert (made.origin > 0).sum(0).tolist() == [1] * 7
    assert sorted((made.origin > 0).sum(1).tolist()) == [1, 3, 3]
    assert made.round.client_ids == ("bucketing 0", "bucketing 1", "bucketing 2")


def test_rounds_and_seeds_draw_anew_and_arrival_has_no_part():
    round = as_round(torch.randn(12, 2))
    first = Bucketing().prepare(None, round, Server(seed=1)).evidence["bucket"]
    assert torch.equal(first, Bucketing().prepare(None, round, Server(seed=1)).evidence["bucket"])
    assert not torch.equal(
        first, Bucketing().prepare(None, round, Server(seed=2)).evidence["bucket"]
    )
    later = replace(round, index=2)
    assert not torch.equal(
        first, Bucketing().prepare(None, later, Server(seed=1)).evidence["bucket"]
    )
    backwards = replace(round, updates=round.updates.flip(0), client_ids=round.client_ids[::-1])
    turned = Bucketing().prepare(None, backwards, Server(seed=1)).evidence["bucket"]
    assert torch.equal(first, turned.flip(0))


def test_every_order_is_drawn_about_as_often():
    seen = [
        tuple(drawn_order(as_round(torch.zeros(3, 1), index=index), Server(), "b").tolist())
        for index in range(600)
    ]
    counts = [seen.count(order) for order in set(seen)]
    assert len(counts) == 6
    assert min(counts) > 60


def test_the_rule_must_have_rows_enough():
    defense = create("bucketing+krum")
    assert defense.shortage(7) is None
    problem = "krum needs n >= f + 3, got n=3, f=1 (6 clients make 3 rows)"
    assert defense.shortage(6) == problem
    with pytest.raises(TooFewClientsError):
        defense.check_clients(6)
    assert create("bucketing+median", {"bucket_size": 6}).shortage(11) == (
        "bucketing+median needs rows >= 2f + 1, got rows=2, f=1 (11 clients make 2 rows)"
    )


def test_what_is_said_of_a_bucket_is_said_of_its_clients():
    defense = create("bucketing+krum", {"bucket_size": 2})
    round = as_round(torch.randn(9, 4))
    result = defense.aggregate(defense.init(Server(), round.global_params), round, Server())
    buckets = result.evidence["bucketing.bucket"].tolist()
    assert len(set(buckets)) == len(set(result.evidence["mixed.score"].tolist())) == 5
    chosen = [bucket for bucket, w in zip(buckets, result.weights.tolist(), strict=True) if w > 0]
    assert len(set(chosen)) == 1
    assert result.report["bucketing.rows"] == 5
