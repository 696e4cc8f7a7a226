"""Model replacement: the update is scaled by what the attacker claims, if that is a count."""

from dataclasses import dataclass
from typing import Any

import pytest
import torch
from tests.attacks.situations import FEDERATION, context, trainer

from datadefense.attacks.model_replacement import ModelReplacement


@dataclass(frozen=True)
class Claims(ModelReplacement):
    says: Any = 20

    def num_examples(self, data):
        if isinstance(self.says, Exception):
            raise self.says
        return self.says


@pytest.mark.parametrize(
    ("says", "factor"),
    [(20, 20.0), (400, 1.0), (0, 1.0), (-5, 1.0), (1e30, 1.0), ("many", 1.0), (OSError(), 1.0)],
)
def test_it_scales_by_the_claim_if_it_is_a_count(says, factor):
    update = torch.ones_like(FEDERATION.start)
    attack = Claims(says=says)
    scaled = attack.finish(update, trainer(), FEDERATION.attacker_data, context())
    assert torch.equal(scaled, factor * update)
