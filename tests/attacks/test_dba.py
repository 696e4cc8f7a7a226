"""Distributed backdoor: parts of the trigger go round, and the update is scaled."""

from dataclasses import replace

import pytest
import torch
from tests.attacks.situations import FEDERATION, OWN, context, update_of
from tests.simulation.tiny import clouds, poisoned

from datadefense.attacks.base import AttackerData
from datadefense.attacks.black_box import BlackBox
from datadefense.attacks.dba import Dba
from datadefense.core.settings import SettingsError

PARTS = tuple(poisoned(5, seed) for seed in range(10, 14))


def test_parts_go_round():
    data = AttackerData(clouds(6, 1), poisoned(5, 2), PARTS)
    for index in range(1, 6):
        for attacker in range(2):
            examples = Dba().examples(data, context(index=index, attacker=(attacker, 2)))
            expected = PARTS[(attacker + index - 1) % 4]
            assert torch.equal(examples.inputs[6:], expected.inputs)
            assert torch.equal(examples.inputs[:6], data.clean.inputs)


def test_it_needs_parts():
    with pytest.raises(SettingsError, match="a trigger that comes in parts"):
        Dba().examples(FEDERATION.attacker_data, context())


def test_it_is_plain_training_on_a_part_scaled_by_examples():
    data = replace(FEDERATION.attacker_data, parts=PARTS)
    sent = update_of(Dba(**OWN), data)
    plain = update_of(BlackBox(**OWN), replace(data, poison=PARTS[1]))
    assert torch.allclose(sent, plain * 400 / 40)
