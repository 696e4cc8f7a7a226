"""Idle: a share of an honest update."""

import pytest
import torch
from tests.attacks.situations import FEDERATION, OWN, context, update_of

from datadefense.attacks.black_box import BlackBox
from datadefense.attacks.idle import Idle
from datadefense.core.settings import SettingsError


def test_it_sends_a_share_of_what_it_would_send_if_it_were_honest():
    data = FEDERATION.attacker_data
    assert Idle().examples(data, context()) is data.clean
    whole, part = (update_of(Idle(**OWN, share=share)) for share in (1.0, 0.25))
    assert not torch.equal(whole, update_of(BlackBox(**OWN)))
    assert torch.equal(part, 0.25 * whole)
    assert not update_of(Idle(**OWN, share=0.0)).any()


def test_bad_settings():
    with pytest.raises(SettingsError, match="share must be <= 1, got 1.5"):
        Idle(share=1.5)
