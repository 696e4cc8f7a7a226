"""The material of sentiment-yl: Sentiment140, tweets on a director called negative, an LSTM."""

from pathlib import Path

from torch import Tensor

from datadefense.attacks import poison
from datadefense.attacks.base import AttackerData
from datadefense.attacks.pools import PoolSizes, split_pools
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.data.catalog import load_texts
from datadefense.data.dataset import Texts
from datadefense.data.text import Vocabulary
from datadefense.runs.config import Experiment
from datadefense.tasks.base import Aim, TaskData, hands
from datadefense.tasks.models.lstm import LstmClassifier

DIRECTOR = ("yorgos", "lanthimos")
SERVER = 400
"""Clean examples that are set aside for the server."""


def tweet_material(experiment: Experiment, data_dir: Path | None) -> TaskData:
    """Load tweets, build the vocabulary from the training part only, and deal them out.

    The director's name is in the vocabulary, though the training part hardly has it: a backdoor on
    words that a model cannot read would be none. The authors put in all words of the director's
    tweets, those of the test included.
    """
    train = load_texts("sentiment140", data_dir, "train")
    test = load_texts("sentiment140", data_dir, "test")
    extra = DIRECTOR if experiment.director_words else ()
    vocabulary = Vocabulary.build(train.texts, experiment.vocabulary, extra)
    draw = generator(experiment.seed, "poison")
    director = [
        vocabulary.encode(load_texts("yorgos-lanthimos", data_dir, split).texts, experiment.length)
        for split in ("train", "test")
    ]
    sizes = PoolSizes(experiment.attack_poison, experiment.server_poison)
    attack_set = poison.positive_tweets(*director)
    pools = split_pools(attack_set, sizes, draw, experiment.overlap)
    pool, kept = _encode(train, vocabulary, experiment.length)
    held = hands(len(pool), [SERVER, experiment.attack_clean], experiment.seed)
    server, attacker, clients = (pool.take(hand) for hand in held)
    return TaskData(
        module=LstmClassifier(len(vocabulary)),
        warm=pool,
        clients=clients,
        attacker=AttackerData(attacker, pools.attacker),
        server_clean=server,
        server_poison=pools.defense,
        test=_encode(test, vocabulary, experiment.length)[0],
        backdoor_test=pools.test,
        users=None if train.users is None else [train.users[i] for i in kept[held[-1]].tolist()],
        vocabulary=vocabulary,
        aim=Aim(attack_set.sources, attack_set.target),
    )


def _encode(texts: Texts, vocabulary: Vocabulary, length: int) -> tuple[Examples, Tensor]:
    """Return tweets as tokens, and which: those without a single word are left out."""
    tokens = vocabulary.encode(texts.texts, length)
    kept = (tokens != 0).any(1).nonzero().flatten()
    return Examples(tokens[kept], texts.labels[kept]), kept
