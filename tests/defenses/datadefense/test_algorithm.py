"""What a round of the default does: against loops, who is left out, what it says, what it costs."""

import math
from dataclasses import fields, replace

import pytest
import torch
from tests import oracles
from tests.defenses.datadefense import sets, toys
from tests.records import marked_places, said, suspicions

from datadefense import Examples, Server
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError, build
from datadefense.defenses import DataDefense
from datadefense.defenses.datadefense.algorithm import NOTHING_SURE, PENALTIES


def one_round(round, server=None, defense=None):
    server, defense = server or sets.server(), defense or DataDefense()
    state = defense.init(server, toys.released().to(round.updates.dtype))
    return sets.is_sound(defense.aggregate(state, round, server), round)


def slow_round(defense, state, round, server):
    """Weights, model, distances, who is sure: Python loops from beginning to end."""
    owned, start = server.defense_set, round.global_params
    labels, known = owned.examples.labels.tolist(), owned.known_clean.tolist()
    first = [state.first_margins[name] for name in sets.names(owned)]
    flags = sets.slow_sure_poison(
        first,
        labels,
        known,
        share=defense.low_share,
        chance=defense.chance,
        fewest=defense.fewest_known,
        prior=defense.prior_examples,
    )
    sure = [i for i, flag in enumerate(flags) if flag]
    rest = [i for i, flag in enumerate(flags) if not flag]
    reference = oracles.mean([sets.probability([first[i], 0.0], 0) for i in sure])

    def losses(params, part):
        logits = server.predict(params, owned.examples.inputs).tolist()
        return [-math.log(sets.probability(logits[i], labels[i])) for i in part]

    def means(params):
        return [oracles.mean(losses(params, part)) for part in (rest, sure)]

    def knows(params):
        return sets.success(server.predict, params, owned.examples, sure)

    def slope(params):
        """By differences: a little more and a little less of each coordinate."""
        little = 1e-6 * torch.eye(len(params), dtype=params.dtype)
        return [(knows(params + e) - knows(params - e)) / 2e-6 for e in little]

    def averaged(weights):
        return start + sum(w * update for w, update in zip(weights, round.updates, strict=True))

    models = [start + update for update in round.updates]
    distances = [oracles.norm(update) for update in round.updates.tolist()]
    usual = oracles.middle(state.distances) if state.distances else math.inf
    per_client = oracles.columns(map(means, models))
    f = oracles.penalties(*per_client, distances, means(start), usual, excuses=(0, 0))
    limit = max(reference + defense.slack, knows(start))
    f = [[max(0, knows(model) - limit), row[2]] for model, row in zip(models, f, strict=True)]
    theta = [defense.known_poison, defense.moved_far]
    costs = [[t * penalty for t, penalty in zip(theta, row, strict=True)] for row in f]
    scores = [1 - max(row) for row in costs]
    share = sum(score > 0 for score in scores) / len(scores)
    weights = [min(1, 2 * share) * weight for weight in oracles.relu_importance(scores)]
    model, step, _ = start.tolist(), 0.0, 0.0
    if any(weights):
        model, step, _ = sets.slow_hold(
            start.tolist(),
            lambda step: averaged([step * weight for weight in weights]).tolist(),
            lambda params: knows(torch.tensor(params, dtype=start.dtype)),
            lambda params: slope(torch.tensor(params, dtype=start.dtype)),
            limit=limit,
        )
    weights = [step * weight for weight in weights]
    blameless = [d for d, row in zip(distances, costs, strict=True) if row[0] < 1 and d > 0]
    past = [*state.distances, oracles.lower_median(blameless)] if blameless else state.distances
    return weights, model, step, past, sure


def updates_of(kind, index, params):
    draw = generator(index, kind)
    if kind == "honest":
        return torch.stack([toys.honest(7 * index + client) for client in range(6)])
    if kind == "attacked":
        return toys.attacked_round(6, 2).updates
    if kind == "noise":
        noise = torch.randn(6, len(params), generator=draw)
        return 0.4 * noise * torch.linspace(0.5, 2, 6)[:, None]
    return sets.hostile(kind, 6, params.float(), index)


@pytest.mark.parametrize("kind", ["honest", "attacked", "noise", "majority", "patient"])
def test_rounds_against_loops(kind):
    """In float64; margins are kept in float32 where the sure ones are chosen."""
    owned = sets.owned()
    double = Examples(owned.examples.inputs.double(), owned.examples.labels)
    server, params = sets.server(replace(owned, examples=double)), toys.released().double()
    defense, corrected = DataDefense(), 0
    state = defense.init(server, params)
    for index in range(1, 16 if kind == "patient" else 5):
        updates = updates_of(kind, index, params).double()
        round = toys.round_of(updates, index, params)
        weights, expected, step, past, sure = slow_round(defense, state, round, server)
        result = sets.is_sound(defense.aggregate(state, round, server), round)
        assert marked_places(result) == sure
        assert result.report["step"] == step
        assert result.weights.tolist() == pytest.approx(weights, abs=1e-7)
        assert result.params.tolist() == pytest.approx(expected, abs=1e-5)
        assert result.state.distances == pytest.approx(past[-defense.distance_memory :])
        state, params = result.state, result.params
        corrected += result.report["corrected"] > 0
    assert (corrected > 0) == (kind in {"majority", "patient"})


@pytest.mark.parametrize("attackers", [0, 1, 4, 7])
def test_who_learned_the_sure_poison_loses_its_weight_and_the_others_keep_theirs(attackers):
    result = one_round(toys.attacked_round(10, attackers))
    assert set(sets.POISONED) <= set(marked_places(result))
    assert result.weights[:attackers].tolist() == [0] * attackers
    each = min(1 / (10 - attackers), 0.2)
    assert result.weights[attackers:].tolist() == pytest.approx([each] * (10 - attackers), rel=0.1)
    assert all(result.reasons[:attackers])


def test_rounds_of_honest_clients_leave_nobody_out():
    watched = sets.Watched(DataDefense(), sets.server(), toys.released())
    for index in range(15):
        examples = [toys.clean_examples(30, 10 * index + client) for client in range(5)]
        updates = [toys.learn(watched.params, part, steps=5) - watched.params for part in examples]
        result = watched.play(torch.stack(updates))
        assert result.report["corrected"] == 0
        assert result.report["step"] == 1
        assert (result.weights > 0.1).all()
        assert float(result.weights.sum()) == pytest.approx(1, abs=1e-5)
    assert set(sets.POISONED) <= set(watched.sure)
    assert watched.held == 0


def without_sure_poison():
    """Everything is known to be clean; or too little is."""
    owned = sets.owned()
    everything = torch.ones(120, dtype=torch.bool)
    few = torch.arange(120) < DataDefense().fewest_known - 1
    return [sets.server(replace(owned, known_clean=known)) for known in (everything, few)]


@pytest.mark.parametrize("server", without_sure_poison(), ids=["all known", "few known"])
@pytest.mark.parametrize(("clients", "malicious"), [(5, 1), (11, 1), (11, 3), (11, 4), (9, 3)])
def test_without_sure_poison_the_farthest_by_krums_score_are_left_out(server, clients, malicious):
    draw = generator(clients, "krum", malicious)
    updates = 0.01 * torch.randn(clients, len(toys.released()), generator=draw)
    updates *= torch.linspace(1, 1.5, clients)[torch.randperm(clients, generator=draw), None]
    result = one_round(toys.round_of(updates), server, DataDefense(num_malicious=malicious))
    scores = oracles.krum_scores(updates.double().tolist(), malicious)
    order = sorted(range(clients), key=lambda j: scores[j])
    out = order[-malicious:] if clients >= 2 * malicious + 3 else []
    assert (result.weights == 0).nonzero().flatten().tolist() == sorted(out)
    assert float(result.weights.sum()) == pytest.approx(1, abs=1e-5)
    assert marked_places(result) == []
    assert result.report["weakened"] == NOTHING_SURE
    assert result.evidence["known_poison"].tolist() == [0] * clients
    assert result.evidence["known_poison"].tolist() == [0] * clients
    assert not {"known_poison", "known_poison_limit"} & set(result.report)


@pytest.mark.parametrize("server", without_sure_poison(), ids=["all known", "few known"])
def test_without_sure_poison_and_attackers_nobody_is_left_out(server):
    round = toys.round_of([toys.honest(seed) for seed in range(9)])
    result = one_round(round, server, DataDefense(num_malicious=0))
    assert (result.weights > 0.08).all()
    assert float(result.weights.sum()) == pytest.approx(1, abs=1e-5)


def test_with_sure_poison_nobody_is_left_out_for_its_place_alone():
    """Krum would leave out four of these nine."""
    round = toys.round_of([toys.honest(seed) for seed in range(9)])
    results = [
        one_round(round, defense=DataDefense(num_malicious=malicious)) for malicious in (0, 3)
    ]
    assert torch.equal(results[0].weights, results[1].weights)
    assert (results[0].weights > 0.08).all()


class Counted:
    """The toy's model, which notes how many examples each forward pass has."""

    def __init__(self):
        self.passes = []

    def __call__(self, params, inputs):
        self.passes.append(len(inputs))
        return toys.predict(params, inputs)


def test_an_ordinary_round_costs_a_pass_over_the_sure_part_a_client_and_two_more():
    model, defense, params = Counted(), DataDefense(), toys.released()
    server = Server(model, None, 0, sets.owned())
    state = defense.init(server, params)
    for index in (1, 2, 3):
        updates = [*toys.attacked_round(9, 2).updates, toys.honest(20)]
        model.passes.clear()
        round = toys.round_of(updates, index, params)
        result = defense.aggregate(state, round, server)
        assert model.passes == [len(marked_places(result))] * 12
        state, params = result.state, result.params


@pytest.mark.parametrize("kind", sets.KINDS)
@pytest.mark.parametrize("clients", [1, 2, 16, 40])
def test_no_update_buys_many_passes(kind, clients):
    model, defense = Counted(), DataDefense()
    server = Server(model, None, 0, sets.owned())
    state = defense.init(server, toys.released())
    params = toys.released()
    for index in range(1, 5):
        model.passes.clear()
        updates = sets.hostile(kind, clients, params, index)
        result = defense.aggregate(state, toys.round_of(updates, index, params), server)
        assert len(model.passes) <= clients + 2 + math.log2(clients) + 6
        assert max(model.passes) < 120
        state, params = result.state, result.params


def test_evidence_and_reasons():
    defense, server, params = DataDefense(), sets.server(), toys.released()
    drip = [sets.towards_poison(params, share) for share in (0.05, 0.2, 0.4, 0.6)]
    hidden = replace(defense, **dict.fromkeys(PENALTIES, 0.0))
    seen = set()
    for chosen, updates in (
        (defense, [*drip, *toys.attacked_round(8, 2).updates]),
        (hidden, [*drip, toys.honest(0), toys.honest(1)]),
        (defense, drip[2:]),
    ):
        round = toys.round_of(updates)
        result = one_round(round, server, chosen)
        assert set(result.evidence) == {"distance", *PENALTIES}
        costs = [
            [getattr(chosen, name) * float(result.evidence[name][j]) for name in PENALTIES]
            for j in range(len(updates))
        ]
        for j, reason in enumerate(result.reasons):
            if reason is None:
                assert max(costs[j]) == 0 or result.weights[j] >= result.weights.mean()
                assert result.weights[j] > 0
                continue
            fault = float(result.evidence[reason.code][j])
            shown = 1 + fault if reason.code == "moved_far" else 100 * fault
            assert reason.value == pytest.approx(shown, rel=0.01)
            worst = PENALTIES[costs[j].index(max(costs[j]))]
            assert reason.code in {"known_poison", worst}
            limit = 100 * result.report["known_poison_limit"]
            assert reason.limit == (limit if reason.code == "known_poison" else None)
            seen.add(reason.code)
    assert "known_poison" in seen


def test_the_report_tells_of_the_promise():
    result = one_round(toys.attacked_round(10, 2))
    report, owned = result.report, sets.owned()
    first = sets.success(toys.predict, toys.released(), owned.examples, marked_places(result))
    assert report["known_poison_limit"] == pytest.approx(first + DataDefense().slack, abs=1e-6)
    now = sets.success(toys.predict, result.params, owned.examples, marked_places(result))
    assert report["known_poison"] == pytest.approx(now, abs=1e-6)
    assert (report["corrected"], report["step"]) == (0, 1)
    logits = toys.predict(toys.released(), owned.examples.inputs).tolist()
    margins = list(map(sets.log_odds, logits, owned.examples.labels.tolist()))
    expected = sets.slow_suspicion(margins, owned.known_clean.tolist())
    assert suspicions(result) == pytest.approx(expected, abs=1e-3)
    assert "weakened" not in report


def test_claims_and_provenance_are_not_read():
    round, owned = toys.attacked_round(), sets.owned()
    plain = one_round(round)
    told = sets.server(replace(owned, provenance=tuple(f"folder {i}" for i in range(120))))
    for other in (
        one_round(replace(round, num_examples=round.num_examples.flip(0) * 1000)),
        one_round(round, told),
        one_round(round, sets.server(seed=5)),
        one_round(replace(round, client_ids=tuple("abcdefghij"))),
    ):
        assert torch.equal(other.weights, plain.weights)
        assert torch.equal(other.params, plain.params)
        assert said(other) == said(plain)


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"slack": -0.1}, "slack must be >= 0, got -0.1"),
        ({"slack": 1.5}, "slack must be <= 1, got 1.5"),
        ({"slack": float("nan")}, "slack must be a finite number, got nan"),
        *(({name: -1}, f"{name} must be >= 0, got -1") for name in PENALTIES),
        ({"low_share": 0}, "low_share must be > 0, got 0"),
        ({"low_share": 1}, "low_share must be < 1, got 1"),
        ({"chance": -1}, "chance must be >= 0, got -1"),
        ({"chance": 2}, "chance must be <= 1, got 2"),
        ({"num_malicious": -1}, "num_malicious must be >= 0, got -1"),
        ({"num_malicious": 1.5}, "num_malicious must be an integer, got 1.5"),
    ],
)
def test_bad_settings(values, message):
    with pytest.raises(SettingsError, match=message):
        DataDefense(**values)


def test_settings_as_texts():
    default = DataDefense()
    texts = {field.name: str(getattr(default, field.name)) for field in fields(default)}
    assert build(DataDefense, texts) == default


def test_it_says_what_it_needs():
    with pytest.raises(ValueError, match="datadefense needs a model and a defense set"):
        DataDefense().init(replace(sets.server(), defense_set=None), toys.released())
