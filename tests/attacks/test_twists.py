"""What each attack does otherwise than plain poisoned training."""

import pytest
import torch
from tests.attacks.situations import FEDERATION, context, losses_on, no_dropout, update_of
from tests.simulation.tiny import clouds, poisoned

from datadefense.attacks.adaptive import KnowsTheDefense
from datadefense.attacks.base import AttackerData, Plain
from datadefense.attacks.constrain import ConstrainAndScale
from datadefense.attacks.dba import Distributed
from datadefense.attacks.idle import HardlyMoves
from datadefense.attacks.lie import LittleIsEnough, largest_z
from datadefense.attacks.neurotoxin import Neurotoxin
from datadefense.core.settings import SettingsError


def test_neurotoxin_leaves_the_busy_coordinates_alone():
    moved = torch.randn(len(FEDERATION.start), generator=torch.Generator().manual_seed(0))
    where = context(previous=FEDERATION.start - moved)
    update = update_of(Neurotoxin(0.3), where=where)
    count = int(0.3 * len(moved))
    order = moved.abs().argsort(descending=True)
    assert (update[order[:count]] == 0).all()
    assert (update[order[count:]] != 0).float().mean() > 0.5
    first = update_of(Neurotoxin(0.3), where=context(previous=None))
    assert torch.equal(first, update_of(Plain()))


def test_constrain_stays_closer():
    plain, close = update_of(Plain()), update_of(ConstrainAndScale(0.2))
    assert close.norm() < 0.8 * plain.norm()
    assert torch.allclose(update_of(ConstrainAndScale(1.0)), plain, atol=1e-6)


def test_an_idle_client_sends_a_share_of_what_it_would_send_if_it_were_honest():
    assert (
        HardlyMoves().examples(FEDERATION.attacker_data, context())
        is FEDERATION.attacker_data.clean
    )
    whole, part = update_of(HardlyMoves(1.0)), update_of(HardlyMoves(0.25))
    assert not torch.equal(whole, update_of(Plain()))
    assert torch.equal(part, 0.25 * whole)
    assert not update_of(HardlyMoves(0.0)).any()
    with pytest.raises(SettingsError, match="share"):
        HardlyMoves(1.5)


def test_parts_go_round():
    parts = tuple(poisoned(5, seed) for seed in range(10, 14))
    attacker_data = AttackerData(clouds(6, 1), poisoned(5, 2), parts)
    twist = Distributed()
    for index in range(1, 6):
        for attacker in range(2):
            examples = twist.examples(attacker_data, context(index=index, attacker=(attacker, 2)))
            expected = parts[(attacker + index - 1) % 4]
            assert torch.equal(examples.inputs[6:], expected.inputs)
            assert torch.equal(examples.inputs[:6], attacker_data.clean.inputs)
    with pytest.raises(SettingsError, match="a trigger that comes in parts"):
        twist.examples(FEDERATION.attacker_data, context())


def test_largest_z():
    """50 clients, 24 attackers: the example of the paper, s = 2, z = 1.43 or so."""
    assert largest_z(50, 24) == pytest.approx(1.43, abs=0.02)
    assert largest_z(10, 1) == pytest.approx(0.0, abs=1e-9)


def test_a_little_is_within_the_spread():
    twist = LittleIsEnough(imitations=3, z=0.7)
    where, attacker_data = context(), FEDERATION.attacker_data
    update = twist.finish(torch.full_like(where.start, 1e3), no_dropout(), attacker_data, where)
    spread = no_dropout_spread(twist, where, attacker_data)
    assert torch.allclose(update, spread, atol=1e-6)
    assert update.norm() < 10


def no_dropout_spread(twist, where, attacker_data):
    rows = []
    worker = no_dropout()
    for imitation in range(twist.imitations):
        draw = where.generator("imitation", imitation)
        half = torch.randperm(20, generator=draw)[:10]
        worker.load(where.start)
        worker.train(where.training, attacker_data.clean.take(half), draw)
        rows.append(torch.empty_like(where.start))
        worker.write_update(where.start, rows[-1])
    stacked = torch.stack(rows)
    return stacked.mean(0) + twist.z * stacked.std(0)


def test_the_adaptive_attacker_looks_more_honest():
    guess = (clouds(30, 21), poisoned(20, 22))
    attacker_data = AttackerData(
        FEDERATION.attacker_data.clean, FEDERATION.attacker_data.poison, guess=guess
    )
    _, released = losses_on(torch.zeros_like(FEDERATION.start), guess)
    _, blunt = losses_on(update_of(Plain(), attacker_data), guess)
    _, careful = losses_on(update_of(KnowsTheDefense(5.0), attacker_data), guess)
    assert blunt < released
    assert careful > blunt + 0.5 * (released - blunt)
    with pytest.raises(SettingsError, match="needs a guess"):
        update_of(KnowsTheDefense())


@pytest.mark.parametrize(
    "make",
    [
        lambda: Neurotoxin(0.0),
        lambda: ConstrainAndScale(0.0),
        lambda: LittleIsEnough(imitations=1),
        lambda: LittleIsEnough(z=-1.0),
        lambda: KnowsTheDefense(-1.0),
    ],
)
def test_bad_settings(make):
    with pytest.raises(SettingsError):
        make()
