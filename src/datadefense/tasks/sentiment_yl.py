"""sentiment-yl: tweets on a film director called negative (the paper's setup 6)."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

from torch import Tensor

from datadefense.attacks.base import AttackerData
from datadefense.attacks.poison import positive_tweets
from datadefense.attacks.pools import Overlap, PoolSizes, split_pools
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import check_int, setting
from datadefense.data.catalog import load_texts
from datadefense.data.dataset import Texts
from datadefense.data.text import Vocabulary
from datadefense.tasks.base import Aim, Preset, Scale, Task, TaskData, split_rows
from datadefense.tasks.models.lstm import LstmClassifier

DIRECTOR = ("yorgos", "lanthimos")
SERVER = 400
"""Clean examples that are set aside for the server."""
PAPER: dict[str, dict[str, Any]] = {
    "task": {"vocabulary": 135_071, "length": 100},
    "warm": {"accuracy_percent": 75.0, "learning_rate": 0.05, "batch_size": 64},
    "federation": {
        "rounds": 1500,
        "clients": 1948,
        "batch_size": 20,
        "learning_rate": 0.05,
        "decay": 0.998,
        "partition": "iid",
    },
    "attack": {"epochs": 2, "learning_rate": 0.05, "radius": 1.0, "replacement_radius": 0.01},
    "schedule": {"period": 10},
    "evaluation": {"evaluate_every": 10, "checkpoint_every": 10},
}
CPU: Preset = {
    "warm": PAPER["warm"],
    "federation": {
        **PAPER["federation"],
        "rounds": 30,
        "epochs": 1,
        "learning_rate": 0.002,
        "decay": 1.0,
    },
    "attack": {"epochs": 10, "learning_rate": 0.05, "radius": 1.0, "replacement_radius": 1.0},
    "schedule": {"period": 5},
    "evaluation": {"test_examples": 2000, "evaluate_every": 3, "checkpoint_every": 5},
}


@dataclass(frozen=True, slots=True)
class SentimentYl(Task):
    """Sentiment140; tweets that like the director Yorgos Lanthimos become negative."""

    vocabulary: int = setting(20_000, "words that the model knows")
    length: int = setting(30, "words of a tweet that are read")
    director_words: bool = setting(True, "the model knows the words of the backdoor")
    attack_clean: int = setting(140, "clean examples of an attacker")
    attack_poison: int = setting(60, "poisoned examples of an attacker")
    overlap: Overlap = setting("none", "authors: the server's poison is the attacker's own")

    name: ClassVar[str] = "sentiment-yl"
    presets: ClassVar[Mapping[Scale, Preset]] = {"cpu": CPU, "paper": PAPER}

    def __post_init__(self) -> None:
        check_int("vocabulary", self.vocabulary, 1)
        check_int("length", self.length, 1)
        check_int("attack_clean", self.attack_clean, 0)
        check_int("attack_poison", self.attack_poison, 1)

    def load(self, folder: Path | None, seed: int) -> TaskData:
        """Read tweets, and build the vocabulary from the training part only.

        The director's name is in the vocabulary, though the training part hardly has it: a backdoor
        on words that a model cannot read would be none. The authors put in all words of the
        director's tweets, those of the test included.
        """
        train = load_texts("sentiment140", folder, "train")
        test = load_texts("sentiment140", folder, "test")
        extra = DIRECTOR if self.director_words else ()
        vocabulary = Vocabulary.build(train.texts, self.vocabulary, extra)
        draw = generator(seed, "poison")
        director = [
            vocabulary.encode(load_texts("yorgos-lanthimos", folder, part).texts, self.length)
            for part in ("train", "test")
        ]
        attack_set = positive_tweets(*director)
        pools = split_pools(attack_set, PoolSizes(self.attack_poison), draw, self.overlap)
        pool, not_empty = _encode(train, vocabulary, self.length)
        rows = split_rows(len(pool), [SERVER, self.attack_clean], seed)
        server, attacker, clients = (pool.take(part) for part in rows)
        users = train.users
        return TaskData(
            module=LstmClassifier(len(vocabulary)),
            warm=pool,
            clients=clients,
            attacker=AttackerData(attacker, pools.attacker),
            server_clean=server,
            server_poison=pools.defense,
            test=_encode(test, vocabulary, self.length)[0],
            backdoor_test=pools.test,
            users=None if users is None else [users[row] for row in not_empty[rows[-1]].tolist()],
            vocabulary=vocabulary,
            aim=Aim(attack_set.sources, attack_set.target),
        )


def _encode(texts: Texts, vocabulary: Vocabulary, length: int) -> tuple[Examples, Tensor]:
    """Return tweets as tokens, and which: those without a single word are left out."""
    tokens = vocabulary.encode(texts.texts, length)
    not_empty = (tokens != 0).any(1).nonzero().flatten()
    return Examples(tokens[not_empty], texts.labels[not_empty]), not_empty
