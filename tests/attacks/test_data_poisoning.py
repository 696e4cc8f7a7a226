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


@pytest.mark.parametrize(
    ("share", "usual", "clean", "poison"),
    [(0.9, 40, 3, 30), (0.01, 51, 40, 1), (0.2, 194, 40, 10), (1.0, 99, 0, 30)],
)
def test_where_there_are_too_few_it_holds_fewer_with_the_same_share(share, usual, clean, poison):
    held = DataPoisoning(poison_share=share).holdings(LOOT, usual)
    assert (len(held.clean), len(held.poison)) == (clean, poison)


def test_without_poison_there_is_no_attack():
    nothing = AttackerData(LOOT.clean, LOOT.poison.take(torch.arange(0)))
    with pytest.raises(SettingsError, match="must be >= 1, got 0"):
        DataPoisoning().holdings(nothing, 20)


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
