"""An ordinary client with poisoned examples: what it holds, and that it trains as honest do."""

import pytest
import torch
from tests.attacks.situations import FEDERATION, context, trainer
from tests.simulation.tiny import clouds, poisoned

from datadefense.attacks.base import AttackerData, seed_module
from datadefense.attacks.data_poisoning import DataPoisoning
from datadefense.core.settings import SettingsError
from datadefense.runs.configure import configure

LOOT = AttackerData(clouds(40, 1), poisoned(30, 2))


@pytest.mark.parametrize(("share", "clean", "poison"), [(0.1, 18, 2), (0.5, 10, 10), (1.0, 0, 20)])
def test_it_holds_as_much_as_an_honest_client(share, clean, poison):
    held = DataPoisoning(poison_share=share).holdings(LOOT, 20)
    assert (len(held.clean), len(held.poison)) == (clean, poison)
    assert torch.equal(held.poison.inputs, LOOT.poison.inputs[:poison])


def test_one_poisoned_example_is_the_least():
    assert len(DataPoisoning(poison_share=0.01).holdings(LOOT, 20).poison) == 1


@pytest.mark.parametrize(("share", "kind"), [(0.9, "36 poisoned"), (0.01, "50 clean")])
def test_more_than_the_attacker_has_is_refused_with_the_numbers(share, kind):
    ordinary = 40 if share > 0.5 else 51
    with pytest.raises(SettingsError, match=f"need {kind} ones, the attacker has"):
        DataPoisoning(poison_share=share).holdings(LOOT, ordinary)


def test_its_update_is_the_one_of_an_honest_client_with_that_data():
    chosen = configure("digits-edge", "cpu", {"attack": "data-poisoning"})
    attack, honest = chosen.attack, chosen.federation.training()
    where = context(training=honest.in_round(2))
    sent = attack.update(trainer(), LOOT, where)
    worker = trainer()
    seed_module(where)
    worker.load(FEDERATION.start)
    worker.train(honest.in_round(where.index), LOOT.mixed(), where.generator("order"))
    expected = torch.empty_like(sent)
    worker.write_update(FEDERATION.start, expected)
    assert torch.equal(sent, expected)


def test_it_has_no_passes_and_no_step_size_of_its_own():
    plain = configure("digits-edge", "cpu", {"attack": "data-poisoning"})
    assert plain.attack == DataPoisoning(poison_share=0.2)
    for key in ("attack.epochs", "attack.learning_rate"):
        with pytest.raises(SettingsError, match="attack data-poisoning has no setting"):
            configure("digits-edge", "cpu", {"attack": "data-poisoning", key: "5"})


@pytest.mark.parametrize(
    ("share", "message"),
    [(0.0, "poison_share must be > 0, got 0"), (1.5, "poison_share must be <= 1, got 1.5")],
)
def test_settings_that_cannot_be(share, message):
    with pytest.raises(SettingsError, match=message):
        DataPoisoning(poison_share=share)
