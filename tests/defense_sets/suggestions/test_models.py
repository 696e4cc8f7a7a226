"""Two models: read in parts, and how many inputs each turns."""

import torch

from datadefense.defense_sets.suggestions.models import ROWS, Models


def test_inputs_are_read_in_parts():
    sizes = []

    def model(inputs):
        sizes.append(len(inputs))
        return torch.stack([inputs.float(), -inputs.float()], dim=1)

    inputs = torch.arange(2 * ROWS + 3) - ROWS
    suspect, trusted = Models(model, lambda given: model(-given)).logits(inputs)
    assert sizes == 2 * [ROWS, ROWS, 3]
    assert torch.equal(suspect, model(inputs))
    assert torch.equal(trusted, model(-inputs))


def test_what_is_turned():
    logits = torch.tensor([[0.0, 1.0], [1.0, 0.0], [0.0, 1.0], [0.0, 1.0]])
    models = Models(lambda _: logits.clone().requires_grad_(), lambda _: -logits)
    assert models.turned(torch.zeros(4), 1) == (0.75, 0.25)
    assert not models.logits(torch.zeros(4))[0].requires_grad
