"""An ordinary client with poisoned examples: what it holds, and that it trains as honest do."""

import pytest
import torch
from tests.attacks.situations import FEDERATION, context, trainer
from tests.simulation.tiny import clouds, poisoned

from datadefense.attacks.base import AttackerData, seed_module
from datadefense.attacks.data_poisoning import OrdinaryPoisoner
from datadefense.attacks.pgd import Pgd
from datadefense.core.settings import SettingsError
from datadefense.runs.presets import experiment

LOOT = AttackerData(clouds(40, 1), poisoned(30, 2))


@pytest.mark.parametrize(("share", "clean", "poison"), [(0.1, 18, 2), (0.5, 10, 10), (1.0, 0, 20)])
def test_it_holds_as_much_as_an_honest_client(share, clean, poison):
    held = OrdinaryPoisoner(share).holdings(LOOT, 20)
    assert (len(held.clean), len(held.poison)) == (clean, poison)
    assert torch.equal(held.poison.inputs, LOOT.poison.inputs[:poison])


def test_one_poisoned_example_is_the_least():
    assert len(OrdinaryPoisoner(0.01).holdings(LOOT, 20).poison) == 1


@pytest.mark.parametrize(("share", "kind"), [(0.9, "36 poisoned"), (0.01, "50 clean")])
def test_more_than_the_attacker_has_is_refused_with_the_numbers(share, kind):
    ordinary = 40 if share > 0.5 else 51
    with pytest.raises(SettingsError, match=f"need {kind} ones, the attacker has"):
        OrdinaryPoisoner(share).holdings(LOOT, ordinary)


def test_its_update_is_the_one_of_an_honest_client_with_that_data():
    chosen = experiment("digits-edge", "cpu", {"attack": "data-poisoning"})
    attack, honest = chosen.make_attack(), chosen.honest_training()
    where = context()
    sent = attack.update(trainer(), LOOT, where)
    worker = trainer()
    seed_module(where)
    worker.load(FEDERATION.start)
    worker.train(honest.in_round(where.index), LOOT.mixed(), where.generator("order"))
    expected = torch.empty_like(sent)
    worker.write_update(FEDERATION.start, expected)
    assert torch.equal(sent, expected)


def test_settings_of_other_attackers_do_not_matter_to_it():
    plain = experiment("digits-edge", "cpu", {"attack": "data-poisoning"})
    changed = {"attack": "data-poisoning", "attack_epochs": "50", "attack_learning_rate": "1.0"}
    assert experiment("digits-edge", "cpu", changed).make_attack() == plain.make_attack()
    assert isinstance(plain.make_attack(), Pgd)
    assert plain.make_attack().twist == OrdinaryPoisoner(0.2)
