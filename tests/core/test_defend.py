import json
import math

import pytest
import torch
from tests.small_resnet import resnet_federation, resnet_server, stripes

from datadefense import DEFENSES, Aggregate, Gate, Layout, Server, Submission, create, defend
from datadefense.core.defense import Combined, Rule
from datadefense.core.detector import DetectorRecord
from datadefense.core.outcomes import Verdict
from datadefense.core.reasons import in_words
from datadefense.testing.toy import TOY_DIM, toy_round, toy_server


class Talkative(Rule):
    """A rule that reports what JSON cannot hold."""

    name = "talkative"

    def combine(self, round):
        report = {"loss": math.nan, "scores": torch.tensor([math.inf]), "pair": (1, 2)}
        return Combined(round.updates[0], report=report)


def test_a_rounds_report_is_strict_json_whatever_the_defense_put_there():
    layout = Layout.of_state_dict({"w": torch.zeros(2)})
    start = torch.zeros(2)
    admission = Gate(layout).admit(1, start, [Submission("a", torch.ones(2), 1)])
    result = defend(Talkative(), None, admission, start, Server())
    assert json.loads(json.dumps(result.report, allow_nan=False)) == {
        "loss": None,
        "scores": [None],
        "pair": [1, 2],
    }


class Watching(Rule):
    """A third party's rule with a detector, theta and no reasons."""

    name = "watching"

    def combine(self, round):
        raise NotImplementedError

    def aggregate(self, state, round, server):
        weights = torch.tensor([1.0, 0.0])
        detector = DetectorRecord({"x": math.nan, "y": 0.5}, ["y"])
        return Aggregate(round.updates[0], None, weights, detector=detector, theta={"norm": 0.5})


def test_everybody_who_sent_has_an_outcome_and_the_rest_goes_through():
    layout, start = Layout.of_state_dict({"w": torch.zeros(2)}), torch.zeros(2)
    sent = [Submission(one, torch.ones(2), count) for one, count in (("a", 1), ("b", 0), ("c", 7))]
    admission = Gate(layout).admit(1, start, sent)
    result = defend(Watching(), None, admission, start, Server())
    assert [(one.client, one.verdict, one.num_examples) for one in result.outcomes] == [
        ("a", Verdict.COUNTED, 1),
        ("b", Verdict.REJECTED, None),
        ("c", Verdict.EXCLUDED, 7),
    ]
    assert result.outcomes[1].reason.text == admission.rejected[0].reason
    assert result.detector == DetectorRecord({"x": None, "y": 0.5}, ("y",))
    assert result.theta == {"norm": 0.5}


def test_in_a_round_that_is_held_nobody_counts():
    layout, top = Layout.of_state_dict({"w": torch.zeros(2)}), torch.full((2,), 3e38)
    admission = Gate(layout).admit(1, top, [Submission("a", top, 1)])
    result = defend(create("fedavg"), None, admission, top, Server())
    assert "held" in result.report
    (outcome,) = result.outcomes
    assert (outcome.verdict, outcome.weight) == (Verdict.EXCLUDED, 0)
    assert in_words(outcome.reason) == "the model was kept: nobody counted"


@pytest.mark.parametrize("name", ["datadefense-appendix", "datadefense-released"])
def test_a_loss_that_overflows_is_null_in_the_report(name):
    """One update at the end of the float range: the printed forms' own loss is not a number."""
    server, start = toy_server(), toy_round().global_params
    updates = toy_round().updates.clone()
    updates[0] = torch.where(torch.arange(TOY_DIM) < TOY_DIM // 2, 3.4e38, -3.4e38)
    layout = Layout.of_state_dict({"w": start})
    admission = Gate(layout).screen(1, start, updates, [10] * 11, range(11))
    assert admission.rejected == ()
    defense = create(name)
    state = defense.init(server, start)
    raw = defense.aggregate(state, admission.round, server)
    assert raw.report["loss"] is None
    result = defend(defense, state, admission, start, server)
    json.dumps(dict(result.report), allow_nan=False)
    assert result.report.get("loss") is None
    assert result.params.isfinite().all()


@pytest.mark.parametrize("sent", [-1e6, -1e30, 3e38])
@pytest.mark.parametrize("name", DEFENSES)
def test_no_client_makes_a_variance_negative(name, sent):
    """The root of a negative variance would be NaN for everybody."""
    federation = resnet_federation()
    layout, start = federation.layout, federation.start
    draw = torch.Generator().manual_seed(0)
    updates = 0.01 * torch.randn(7, layout.dim, generator=draw)
    for slot in layout.slots:
        if slot.is_variance:
            updates[6, slot.start : slot.stop] = sent
    server, defense = resnet_server(federation), create(name)
    submissions = [Submission(j, row, 60) for j, row in enumerate(updates)]
    admission = Gate(layout).admit(1, start, submissions)
    assert not admission.rejected
    result = defend(defense, defense.init(server, start), admission, start, server)
    state = layout.unflatten(result.params)
    assert all((state[slot.name] >= 0).all() for slot in layout.slots if slot.is_variance)
    module = federation.module
    module.load_state_dict(state, strict=False)
    assert module.eval()(stripes(8, 1).inputs).isfinite().all()
