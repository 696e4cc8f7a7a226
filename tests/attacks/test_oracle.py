"""The attacker that calls the defense, against a slow search over a fine grid of steps."""

import math
from dataclasses import dataclass, replace
from typing import ClassVar

import pytest
import torch

from datadefense import Aggregate, Defense, create
from datadefense.attacks.base import AttackerData
from datadefense.attacks.collusion import View
from datadefense.attacks.oracle import LEVELS, Oracle, step_to_length
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.testing.toy import TOY_DIM, toy_round, toy_server

ATTACKERS = [1, 6]
WEIGHTED = ["fedavg", "krum", "multi-krum", "rfa", "ndc", "fltrust", "datadefense"]
WITHOUT = ["median", "trimmed-mean", "bulyan"]
FINE = [30 / 1.03**place for place in range(200)]


def view_of(name="krum", num_clients=11, attackers=ATTACKERS, stand_ins=8, server=None):
    """A round of the toy federation in which two of the clients have trained for a backdoor."""
    server = server or toy_server()
    round = toy_round(num_clients)
    goal = 0.05 * torch.randn(TOY_DIM, generator=generator(1, "backdoor"))
    updates = round.updates.clone()
    updates[attackers] += goal
    round = replace(round, updates=updates)
    defense = create(name) if isinstance(name, str) else name
    guess = replace(server, seed=5)

    def loss(params):
        return float((params - round.global_params - goal).square().sum())

    return View(
        round=round,
        attacks=torch.isin(torch.arange(num_clients), torch.tensor(attackers)),
        stand_ins=toy_round(stand_ins, seed=3).updates,
        first=round.global_params,
        rule=defense,
        state=defense.init(server, round.global_params),
        server=server,
        guess=lambda: guess,
        own_loss=loss,
    )


def slow(view, honest, round, attackers, *, server, state):
    """Steps of a fine grid with the attackers' mean weight and the loss after them."""
    middle = torch.stack([honest[:, j].mean() for j in range(honest.shape[1])])
    direction = view.round.updates[view.attacks].mean(0) - middle
    found = []
    for step in [*FINE, 0.0]:
        updates = round.updates.clone()
        for row in attackers:
            updates[row] = middle + step * direction
        result = view.rule.aggregate(state, replace(round, updates=updates), server)
        weight = None
        if result.weights is not None:
            weight = sum(float(result.weights[row]) for row in attackers) / len(attackers)
        found.append((step, weight, view.own_loss(result.params)))
    return found, middle, direction


def slow_everything(view):
    honest = view.round.updates[[j for j in range(view.round.num_clients) if j not in ATTACKERS]]
    return slow(view, honest, view.round, ATTACKERS, server=view.server, state=view.state)


def slow_rule(view):
    """The rule begun anew at the guess; stand-ins, who claim what is usual, before the others."""
    count, own = len(view.stand_ins), view.round.updates[view.attacks]
    others = [
        int(claim) for row, claim in enumerate(view.round.num_examples) if row not in ATTACKERS
    ]
    usual = round(sum(others) / len(others))
    trial = replace(
        view.round,
        updates=torch.cat([view.stand_ins, own]),
        num_examples=torch.tensor(
            [usual] * count + [int(view.round.num_examples[row]) for row in ATTACKERS]
        ),
        client_ids=tuple("abcdefghijklmnop"[: count + len(own)]),
    )
    state = view.rule.init(view.guess(), view.first)
    rows = [count, count + 1]
    return slow(view, view.stand_ins, trial, rows, server=view.guess(), state=state)


def is_best(step, tried):
    """As good as any step within a factor of 1.2 of the best there is."""
    best = min(tried, key=lambda one: one[1])[0]
    near = [loss for one, loss in tried if best / 1.2 <= one <= best * 1.2]
    return min(tried, key=lambda one: abs(one[0] - step))[1] <= max(near)


SLOW = {"everything": slow_everything, "rule": slow_rule}


@pytest.mark.slow
@pytest.mark.parametrize("knowledge", ["rule", "everything"])
@pytest.mark.parametrize("name", WEIGHTED)
def test_the_budget_is_the_largest_step_with_half_a_fair_share(name, knowledge):
    view = view_of(name)
    plot = Oracle(knowledge=knowledge).agree(view)
    tried, middle, direction = SLOW[knowledge](view)
    clients = 11 if knowledge == "everything" else 10
    alive = [(step, loss) for step, weight, loss in tried if step == 0 or weight >= 0.5 / clients]
    budget, step = plot.facts["evasion_budget"], plot.facts["step"]
    wanted = max(step for step, _ in alive)
    assert budget == wanted or budget / 1.031 <= wanted <= budget * 1.05
    assert 0 <= step <= budget
    assert is_best(step, alive)
    for row in plot.updates:
        assert torch.allclose(row, middle + step * direction, atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("knowledge", ["rule", "everything"])
@pytest.mark.parametrize("name", WITHOUT)
def test_a_rule_without_weights_has_the_best_step_for_its_budget(name, knowledge):
    view = view_of(name)
    plot = Oracle(knowledge=knowledge).agree(view)
    tried, _, _ = SLOW[knowledge](view)
    assert all(weight is None for _, weight, _ in tried)
    step = plot.facts["step"]
    assert plot.facts == {"evasion_budget": step, "step": step}
    assert is_best(step, [(step, loss) for step, _, loss in tried])


@dataclass(frozen=True)
class SometimesWeighs(Defense[None]):
    """Has weights only while all is short, as a rule that falls back has."""

    name: ClassVar[str] = "sometimes-weighs"

    def init(self, server, params):
        return None

    def aggregate(self, state, round, server):
        short = float(round.updates.norm(dim=1).max()) < 5
        weights = torch.full((round.num_clients,), 1 / round.num_clients)
        params = round.global_params + weights @ round.updates
        return Aggregate(params, None, weights if short else None)


def test_a_step_after_which_nobody_is_weighed_has_no_weight():
    view = view_of(SometimesWeighs())
    plot = Oracle().agree(view)
    direction = float((plot.updates[0] - view.round.updates[~view.attacks].mean(0)).norm())
    length = direction / plot.facts["step"]
    assert plot.facts["evasion_budget"] == pytest.approx(5 / length, rel=0.1)


def test_averages_let_anything_through_and_get_what_serves_best():
    """The budget has no bound but the attacker's own; what is sent replaces the model."""
    view = view_of("fedavg")
    plot = Oracle().agree(view)
    assert plot.facts["evasion_budget"] == 30
    shares = view.round.shares()[view.attacks].sum()
    assert plot.facts["step"] == pytest.approx(1 / float(shares), rel=0.25)


def test_who_wants_more_weight_dares_less():
    budgets = [
        Oracle(least_weight=wanted).agree(view_of("ndc")).facts["evasion_budget"]
        for wanted in (0.1, 0.5, 0.9)
    ]
    assert budgets[0] > budgets[1] > budgets[2]


def test_no_step_is_longer_than_the_longest():
    assert Oracle(longest_step=2).agree(view_of("fedavg")).facts["evasion_budget"] == 2


def test_who_knows_nothing_is_as_long_as_its_own_honest_trainings():
    """Whatever the rule, which is never called."""
    view = replace(view_of(), rule=None, state=None, server=None, guess=None, own_loss=None)
    plot = Oracle(knowledge="nothing").agree(view)
    lengths = [math.sqrt(sum(float(x) ** 2 for x in row)) for row in view.stand_ins]
    assert plot.facts["step"] == plot.facts["evasion_budget"] > 0
    for row in plot.updates:
        assert float(row.norm()) == pytest.approx(sum(lengths) / len(lengths), rel=1e-4)


@pytest.mark.parametrize("length", [0.5, 1.0, 3.0])
def test_the_step_to_a_length(length):
    draw = generator(0, "vectors")
    middle, direction = torch.randn(2, 50, generator=draw)
    middle *= 0.5 / middle.norm()
    steps = [place / 1000 for place in range(3000)]
    inside = [step for step in steps if float((middle + step * direction).norm()) <= length + 1e-6]
    assert step_to_length(middle, direction, length) == pytest.approx(max(inside), abs=2e-3)
    assert step_to_length(middle, torch.zeros(50), length) == 0
    assert step_to_length(middle, direction, 0.01) == 0


def test_calling_changes_nothing_that_is_true():
    view = view_of("datadefense")
    before, margins = view.round.updates.clone(), dict(view.state.first_margins)
    one, two = (Oracle().agree(view) for _ in range(2))
    assert torch.equal(view.round.updates, before)
    assert view.state.first_margins == margins
    assert view.state.distances == ()
    assert one.facts == two.facts
    assert torch.equal(one.updates, two.updates)


@dataclass(frozen=True)
class Refuses(Defense[None]):
    """Raises, or gives what is not finite."""

    raises: bool = True
    name: ClassVar[str] = "refuses"

    def init(self, server, params):
        return None

    def aggregate(self, state, round, server):
        if self.raises:
            raise ValueError("too few")
        return Aggregate(round.global_params * math.nan, None, torch.ones(round.num_clients))


class CannotBegin(Refuses):
    def init(self, server, params):
        if server.seed == 5:
            raise ValueError("no such data")


@pytest.mark.parametrize("knowledge", ["rule", "everything"])
@pytest.mark.parametrize("rule", [Refuses(True), Refuses(False), CannotBegin(False)])
def test_a_rule_without_an_answer_gets_the_honest_mean(rule, knowledge):
    view = view_of(rule)
    plot = Oracle(knowledge=knowledge).agree(view)
    honest = view.stand_ins if knowledge == "rule" else view.round.updates[~view.attacks]
    assert plot.facts == {"evasion_budget": 0.0, "step": 0.0}
    assert torch.allclose(plot.updates, honest.mean(0).expand(2, -1), atol=1e-7)


@pytest.mark.parametrize("knowledge", LEVELS)
def test_a_round_of_attackers_only(knowledge):
    """Nobody is honest, so there is no mean to start from but that of stand-ins."""
    view = view_of("fedavg", num_clients=2, attackers=[0, 1], stand_ins=2)
    plot = Oracle(knowledge=knowledge).agree(view)
    assert plot.updates.shape == (2, TOY_DIM)
    assert bool(plot.updates.isfinite().all())
    if knowledge == "everything":
        own = view.round.updates.mean(0)
        assert torch.allclose(plot.updates[0], plot.facts["step"] * own, atol=1e-5)
        assert plot.facts["evasion_budget"] == 30


@pytest.mark.parametrize("knowledge", LEVELS)
@pytest.mark.parametrize("name", ["fedavg", "krum", "median", "datadefense"])
def test_a_round_of_one_client(name, knowledge):
    view = view_of(name, num_clients=1, attackers=[0], stand_ins=2)
    assert bool(Oracle(knowledge=knowledge).agree(view).updates.isfinite().all())


@pytest.mark.parametrize("knowledge", LEVELS)
def test_an_attacker_whose_training_came_to_nothing_sends_what_the_others_do(knowledge):
    view = view_of("fedavg")
    updates = view.round.updates.clone()
    updates[ATTACKERS[0]] = math.nan
    half = replace(view, round=replace(view.round, updates=updates))
    plot = Oracle(knowledge=knowledge).agree(half)
    assert bool(plot.updates.isfinite().all())
    assert plot.facts["evasion_budget"] > 0
    updates[ATTACKERS[1]] = math.inf
    none = replace(view, round=replace(view.round, updates=updates))
    plot = Oracle(knowledge=knowledge).agree(none)
    assert plot.facts == {"evasion_budget": 0.0, "step": 0.0}
    assert bool(plot.updates.isfinite().all())


def test_a_step_that_the_gate_would_stop_is_not_taken():
    view = view_of("fedavg")
    updates = view.round.updates.clone()
    updates[ATTACKERS] = 1e38
    plot = Oracle().agree(replace(view, round=replace(view.round, updates=updates)))
    assert bool(plot.updates.isfinite().all())
    assert plot.facts["evasion_budget"] < 30


LOOT = AttackerData(
    Examples(torch.zeros(10, 2), torch.zeros(10, dtype=torch.int64)),
    Examples(torch.ones(9, 2), torch.ones(9, dtype=torch.int64)),
)


@pytest.mark.parametrize("knowledge", LEVELS)
def test_each_level_wants_what_it_needs(knowledge):
    attack = Oracle(knowledge=knowledge)
    wanted = [attack.honest_trainings(others) for others in (0, 1, 8)]
    assert wanted == ([0, 0, 0] if knowledge == "everything" else [2, 2, 8])
    held = attack.holdings(LOOT, 10)
    if knowledge == "rule":
        assert [len(part) for part in held.guess] == [10, 3]
        assert len(held.poison) == 6
    else:
        assert held is LOOT


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"knowledge": "all"}, "knowledge must be one of"),
        ({"least_weight": 0.0}, "least_weight must be > 0"),
        ({"longest_step": 0.0}, "longest_step must be > 0"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(SettingsError, match=message):
        Oracle(**settings)
