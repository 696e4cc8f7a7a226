"""Sets and rounds for the default, and its parts once more in loops over Python numbers."""

import json
import math
import struct

import pytest
import torch
from tests import oracles
from tests.defenses.datadefense import toys
from tests.records import marked_places, suspicions

from datadefense.core.rng import generator

POISONED = list(range(90, 120))
"""Places of the poisoned examples in `owned`."""


def owned():
    """The toy's defense set, with enough known clean examples to be sure of the poison."""
    return toys.defense_set(90, 30, 60)


def server(changed=None, seed=0):
    return toys.server(changed or owned(), seed)


def drawn_set(seed, piles, *, hard=0, clean=300, known=100, classes=10):
    """Margins, labels and marks: clean examples, piles of poison under labels, hard ones.

    Clean margins lie about 5, poisoned and hard ones about -5; hard ones are spread over the
    labels and not known. Returns also which are poisoned.
    """
    draw = generator(seed, "drawn set")
    labels = [place % classes for place in range(clean + hard)]
    for label, count in piles.items():
        labels += [label] * count
    low = torch.arange(len(labels)) >= clean
    margins = torch.randn(len(labels), generator=draw) + torch.where(low, -5.0, 5.0)
    order = torch.randperm(len(labels), generator=draw)
    known_clean = torch.arange(len(labels)) < known
    poisoned = torch.arange(len(labels)) >= clean + hard
    return margins[order], torch.tensor(labels)[order], known_clean[order], poisoned[order]


def slow_suspicion(margins, known_clean):
    clean = [margin for margin, known in zip(margins, known_clean, strict=True) if known]
    if not clean:
        return [0.5 for _ in margins]
    return [sum(other > margin for other in clean) / len(clean) for margin in margins]


def quantile(values, share):
    """Between two values the straight line; rounded to float32, as the margins are."""
    ordered = sorted(values)
    place = share * (len(ordered) - 1)
    below = math.floor(place)
    above = min(below + 1, len(ordered) - 1)
    between = ordered[below] + (place - below) * (ordered[above] - ordered[below])
    return struct.unpack("f", struct.pack("f", between))[0]


def slow_sure_poison(margins, labels, known_clean, *, share, chance, fewest, prior):
    """Label by label, example by example."""
    everyone = range(len(margins))
    clean = [i for i in everyone if known_clean[i]]
    if len(clean) < fewest:
        return [False for _ in everyone]
    q = quantile([margins[i] for i in clean], share)
    piles = {}
    for label in set(labels):
        of_label = [i for i in everyone if labels[i] == label]
        others = [i for i in of_label if not known_clean[i]]
        known = [i for i in of_label if known_clean[i]]
        r = (sum(margins[i] < q for i in known) + prior * share) / (len(known) + prior)
        r = max(share, r)
        low = [i for i in others if margins[i] < q]
        n = len(others)
        luck = sum(math.comb(n, k) * r**k * (1 - r) ** (n - k) for k in range(len(low), n + 1))
        if low and luck < chance:
            piles[label] = low
    most = max((len(low) for low in piles.values()), default=0)
    sure = {i for low in piles.values() if 2 * len(low) >= most for i in low}
    return [i in sure for i in everyone]


def slow_hold(start, average, knows, slope, *, limit, aim=0.98, corrections=5, halvings=5):
    """Whole, then shorter steps, each corrected: coordinate by coordinate, in lists of floats.

    ``average`` makes a model of the share of the step. Returns the model, the share and how far it
    was corrected; the start and 0 where nothing will do.
    """
    for times in range(halvings + 1):
        began = average(0.5**times)
        reach, model = distance(began, start), began
        for _ in range(corrections):
            if knows(model) <= limit:
                break
            g = slope(model)
            steep = sum(value * value for value in g)
            if steep > 0:
                far = (knows(model) - aim * limit) / steep
                model = [x - far * value for x, value in zip(model, g, strict=True)]
            if not distance(model, began) <= reach:
                break
        if distance(model, began) <= reach and knows(model) <= limit:
            return model, 0.5**times, distance(model, began)
    return start, 0.0, 0.0


def distance(here, there):
    return math.sqrt(sum((x - y) ** 2 for x, y in zip(here, there, strict=True)))


def success(predict, params, examples, places):
    """The mean probability of the labels of the examples at these places, one by one."""
    logits = predict(params, examples.inputs).tolist()
    labels = examples.labels.tolist()
    return sum(probability(logits[i], labels[i]) for i in places) / max(1, len(places))


def probability(z, y):
    return math.exp(z[y] - max(z)) / sum(math.exp(value - max(z)) for value in z)


def log_odds(z, y):
    others = [value for label, value in enumerate(z) if label != y]
    top = max(others)
    return z[y] - top - math.log(sum(math.exp(value - top) for value in others))


def is_sound(result, round):
    """Finite and fit for JSON; the weights are >= 0 and have the sum that the report tells."""
    report = result.report
    json.dumps(dict(report), allow_nan=False)
    assert result.params.isfinite().all()
    assert all(values.isfinite().all() for values in result.evidence.values())
    assert all(len(values) == round.num_clients for values in result.evidence.values())
    assert len(result.reasons) == round.num_clients
    assert all(0 <= gamma <= 1 for gamma in suspicions(result))
    assert (result.weights >= 0).all()
    total, counted = float(result.weights.sum()), int((result.weights > 0).sum())
    assert total <= 1 + 1e-5
    if "weakened" not in report:
        expected = report["step"] * min(1, 2 * counted / round.num_clients)
        assert total == pytest.approx(expected, abs=1e-5)
    if counted == 0:
        assert report["fallback"].startswith("datadefense kept the model: ")
        assert torch.equal(result.params, round.global_params)
    elif report.get("step", 1) < 1:
        assert report["fallback"].startswith(f"datadefense took {report['step']:g} of the step: ")
    else:
        assert "fallback" not in report
    return result


def names(owned):
    """What first margins are remembered by: label and id."""
    return [f"{y} {one}" for y, one in zip(owned.examples.labels.tolist(), owned.ids, strict=True)]


class Watched:
    """A defense whose rounds are held to the promise, worked out anew from the model's answers.

    ``held`` says in how many rounds the model was corrected or the step was not the whole.
    """

    def __init__(self, defense, server, params):
        self.defense, self.server, self.params = defense, server, params
        self.state = defense.init(server, params)
        self.first, self.index, self.held, self.sure = {}, 0, 0, []
        self.remember()

    def remember(self):
        """Keep what today's model makes of examples that are new, or have another label."""
        owned = self.server.defense_set
        logits = self.server.predict(self.params, owned.examples.inputs).tolist()
        today = map(log_odds, logits, owned.examples.labels.tolist())
        for name, margin in zip(names(owned), today, strict=True):
            self.first.setdefault(name, margin)

    def play(self, updates, server=None):
        self.server = server or self.server
        self.remember()
        self.index += 1
        round = toys.round_of(updates, self.index, self.params)
        before = self.state.first_margins
        result = is_sound(self.defense.aggregate(self.state, round, self.server), round)
        margins = result.state.first_margins
        assert set(margins) == set(self.first)
        for name, margin in margins.items():
            assert margin == before.get(name, margin)
            assert margin == pytest.approx(self.first[name], rel=1e-4, abs=1e-4)
        self.keeps_the_promise(result)
        self.state, self.params = result.state, result.params
        return result

    def keeps_the_promise(self, result):
        owned, predict = self.server.defense_set, self.server.predict
        self.sure = marked_places(result)
        assert not owned.known_clean[self.sure].any()
        if not self.sure:
            assert "weakened" in result.report
            return
        old, new = (
            success(predict, params, owned.examples, self.sure)
            for params in (self.params, result.params)
        )
        called = names(owned)
        first = oracles.mean([probability([self.first[called[i]], 0.0], 0) for i in self.sure])
        assert new <= max(first + self.defense.slack, old) + 1e-6
        assert result.report["known_poison"] == pytest.approx(new, abs=1e-6)
        limit = max(first + self.defense.slack, old)
        assert result.report["known_poison_limit"] == pytest.approx(limit, abs=1e-6)
        bitten = result.report["corrected"] > 0 or result.report["step"] < 1
        self.held += bitten
        assert (result.report["step"] < 1) == ("fallback" in result.report)


def towards_poison(params, share=1.0, seed=0):
    """An update that goes a share of the way to a model that has learned the trigger."""
    return share * (toys.released() + toys.attacker(seed) - params)


def towards_honest(params, share=1.0, seed=0):
    return share * (toys.released() + toys.honest(seed) - params)


def hostile(kind, clients, params, seed):
    """Updates of a round in which most or all clients are attackers, each kind another way."""
    noise = torch.randn(clients, len(params), generator=generator(seed, "hostile", kind))
    return _hostile(kind, noise, params).nan_to_num(0.0).clamp(-3e38, 3e38)


def _hostile(kind, noise, params):
    clients = len(noise)
    size = noise[:, :1].sigmoid()
    if kind == "random":
        return noise * 10 ** (4 * size - 3)
    if kind == "huge":
        return noise * 10 ** (41 * size - 2)
    if kind == "still":
        return torch.zeros_like(noise)
    if kind == "clones":
        return towards_poison(params, 0.3).repeat(clients, 1)
    if kind == "backwards":
        return -noise - towards_poison(params, 2.0)
    shares = {"learned": 1.0, "boosted": 20.0, "half": 0.5, "patient": 0.03, "majority": 0.2}
    rows = [towards_poison(params, shares[kind], one % 3) for one in range(clients)]
    if kind == "majority":
        honest = clients // 3
        rows[:honest] = [towards_honest(params, 0.5, one) for one in range(honest)]
    return torch.stack(rows) + 0.002 * noise


KINDS = (
    "random",
    "huge",
    "still",
    "clones",
    "backwards",
    "learned",
    "boosted",
    "half",
    "patient",
    "majority",
)
