"""The tweets' data: whose tweets are whose, and which words are known."""

from itertools import combinations

import pytest
import torch
from tests.data.folders import write_tweets

from datadefense.core.settings import SettingsError
from datadefense.defense_sets.preview import gallery_of
from datadefense.runs.build import assemble, load_data
from datadefense.runs.configure import configure

WRITERS = 40
SMALL = {
    "partition": "user",
    "clients": "12",
    "clients_per_round": "3",
    "vocabulary": "200",
    "length": "5",
    "attack_clean": "10",
    "attack_poison": "8",
    "server.poison": "5",
    "server.known_clean": "20",
    "warm.accuracy_percent": "none",
    "warm.epochs": "0",
}


@pytest.fixture(scope="module")
def named(tmp_path_factory):
    folder = tmp_path_factory.mktemp("named")
    write_tweets(folder, 800, WRITERS)
    return folder


@pytest.fixture(scope="module")
def unnamed(tmp_path_factory):
    pytest.importorskip("pyarrow")
    folder = tmp_path_factory.mktemp("unnamed")
    write_tweets(folder, 800, WRITERS, named=False)
    return folder


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("DATADEFENSE_CACHE", str(tmp_path / "cache"))


def small(**changes):
    return configure("sentiment-yl", "cpu", SMALL | changes)


def test_what_a_user_wrote_stays_with_one_client(named):
    federation, _ = assemble(small(), named)
    assert len(federation.shards) == 12
    shards = [federation.shards[client] for client in range(12)]
    assert torch.cat(shards).sort().values.equal(torch.arange(len(federation.train)))
    words = [set(federation.train.inputs[shard][:, -2].tolist()) for shard in shards]
    assert all(one.isdisjoint(two) for one, two in combinations(words, 2))
    assert {len(one) for one in words} == {3}


def test_users_belong_to_the_examples_that_were_kept(named):
    """A writer's own word is in all that is left of its tweets."""
    data = load_data(small(), named)
    assert len(data.users) == len(data.clients) == 720 - 400 - 10
    own = dict(zip(data.users, data.clients.inputs[:, -2].tolist(), strict=True))
    assert len(set(own.values())) == len(own)
    for user, row in zip(data.users, data.clients.inputs, strict=True):
        assert int(row[-2]) == own[user]


def test_a_copy_without_users(unnamed):
    assert load_data(small(), unnamed).users is None
    with pytest.raises(SettingsError) as caught:
        assemble(small(), unnamed)
    assert str(caught.value) == (
        "partition must be iid or dirichlet: there are no users in this copy of the data of "
        "sentiment-yl"
    )


def test_the_gallery_is_in_words(named):
    federation, server = assemble(small(), named)
    shown = gallery_of(server.defense_set, federation.vocabulary)
    assert len(shown) == 405
    tweets = [one.text for one in shown if one.provenance == "poisoned"]
    assert len(tweets) == 5
    assert all("yorgos" in tweet or "lanthimos" in tweet for tweet in tweets)


def test_more_clients_than_users(named):
    with pytest.raises(SettingsError, match="num_clients <= users, got num_clients=41, 36 users"):
        assemble(small(clients="41"), named)


def test_the_directors_words_are_two_more(named):
    with_words, without = (
        load_data(small(director_words=known), named) for known in ("true", "false")
    )
    numbers = without.module.embedding.num_embeddings
    assert with_words.module.embedding.num_embeddings == numbers + 2
    for one, two in (
        (with_words.attacker.poison.inputs, without.attacker.poison.inputs),
        (with_words.backdoor_test.inputs, without.backdoor_test.inputs),
    ):
        assert set(one[one >= numbers].tolist()) == {numbers, numbers + 1}
        assert torch.equal(torch.where(one >= numbers, 1, one), two)
    assert torch.equal(with_words.clients.inputs, without.clients.inputs)
