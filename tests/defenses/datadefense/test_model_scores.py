from dataclasses import replace

import pytest
import torch
from tests.defenses.datadefense import toys
from tests.defenses.datadefense.learned_rounds import same_psi, started

from datadefense import Examples, Server
from datadefense.defenses import DataDefenseLearned
from datadefense.defenses.datadefense.client_losses import WORST
from datadefense.defenses.datadefense.losses import l_c, margin
from datadefense.defenses.datadefense.model_scores import (
    fingerprint,
    keep,
    scores_from_logits,
    scores_of,
)


class Counted:
    """The toy's model, which counts its forward passes."""

    def __init__(self):
        self.passes = 0

    def __call__(self, params, inputs):
        self.passes += 1
        return toys.predict(params, inputs)


def fallen():
    return toys.released() + toys.attacker(0)


def test_what_is_kept_is_what_a_forward_pass_gives():
    examples, server = toys.defense_set().examples, toys.server()
    z = toys.predict(fallen(), examples.inputs)
    given = scores_from_logits(z, examples)
    assert torch.equal(given.losses, l_c(z, examples.labels))
    assert torch.equal(given.margins, margin(z, examples.labels))
    fresh = scores_of(server, fallen(), examples, {})
    known = scores_of(server, fallen(), examples, keep(fallen(), examples, given))
    for expected, computed, remembered in zip(given, fresh, known, strict=True):
        assert torch.equal(expected, computed)
        assert torch.equal(computed, remembered)


def test_logits_that_are_not_finite_give_the_worst():
    z = torch.tensor([[torch.nan, 0.0], [torch.inf, 0.0], [-3e38, 3e38]])
    given = scores_from_logits(z, Examples(torch.zeros(3, 1), torch.tensor([0, 1, 0])))
    assert given.losses.tolist() == [WORST] * 3
    assert given.margins.isfinite().all()
    assert given.margins.abs().max() <= WORST


@pytest.mark.parametrize("what", ["model", "inputs", "labels", "order"])
def test_another_model_or_other_examples_are_not_taken_for_the_kept_ones(what):
    examples = toys.defense_set().examples
    kept = keep(toys.released(), examples, scores_from_logits(torch.zeros(100, 3), examples))
    params = toys.released().clone()
    if what == "model":
        params[3] = torch.nextafter(params[3], params[4])
    elif what == "inputs":
        inputs = examples.inputs.clone()
        inputs[7, 0] += 1
        examples = Examples(inputs, examples.labels)
    elif what == "labels":
        labels = examples.labels.clone()
        labels[7] = (labels[7] + 1) % 3
        examples = Examples(examples.inputs, labels)
    else:
        examples = examples.take(torch.arange(100).flip(0))
    expected = scores_from_logits(toys.predict(params, examples.inputs), examples)
    found = scores_of(toys.server(), params, examples, kept)
    assert torch.equal(found.losses, expected.losses)
    assert torch.equal(found.margins, expected.margins)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_a_fingerprint_is_of_bits_and_not_of_memory(dtype):
    examples = toys.defense_set().examples
    params = toys.released().to(dtype)
    spread = torch.stack([params, params], 1)[:, 0]
    assert not spread.is_contiguous()
    assert fingerprint(spread, examples) == fingerprint(params, examples)
    assert fingerprint(-params, examples) != fingerprint(params, examples)


def test_a_round_that_goes_on_from_the_last_one_saves_a_pass_and_changes_no_bit():
    defense, model = DataDefenseLearned(), Counted()
    server = Server(model, None, 0, toys.defense_set())
    state, params = started(), toys.released()
    for index in (1, 2, 3):
        updates = [toys.honest(0), toys.honest(1), toys.attacker(0)]
        round = toys.round_of(updates, index, params)
        before = model.passes
        result = defense.aggregate(state, round, server)
        assert model.passes - before == 3 + 1
        slow = defense.aggregate(replace(state, kept={}), round, server)
        assert model.passes - before == (3 + 1) + (3 + 2)
        assert torch.equal(result.params, slow.params)
        assert torch.equal(result.state.theta, slow.state.theta)
        assert same_psi(result.state.psi, slow.state.psi)
        assert result.report == slow.report
        state, params = result.state, result.params
