"""Laws that every attack obeys: ``check_attack(MyAttack())``; a broken one says which, and why."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor

from datadefense.attacks.base import Attack, Sees, Threat
from datadefense.core.state_tree import encode
from datadefense.core.storage import StateError, load_state, save_state
from datadefense.testing.broken import BrokenLawError, naming, require, require_plugin, tensors_of
from datadefense.testing.settings_laws import require_name, require_plain_settings
from datadefense.testing.toy_attack import ATTACKERS, ToyAttacker
from datadefense.testing.work import one_thread

AttackLaw = Callable[[Attack], None]
MOST_OTHERS = 40
"""Largest number of honest clients that `honest_trainings` is asked about."""


def settings_are_plain(attack: Attack) -> None:
    """It is a frozen dataclass whose settings can be stored and read back; all have defaults."""
    require_plain_settings(attack)


def threat_is_declared(attack: Attack) -> None:
    """It has a name and says what the attacker must know; who sees more than its data says so."""
    require_name(attack)
    threat = attack.threat
    require(isinstance(threat, Threat), f"threat must be a Threat, got {threat!r}")
    require(threat is not Attack.threat, "threat is not declared: say what the attacker must know")
    sees_more = attack.sees() is not Sees.NOTHING
    plain = threat.knows == Threat().knows
    require(not (sees_more and plain), f"it sees {attack.sees()}, and says it knows {threat.knows}")


def update_is_a_vector(attack: Attack) -> None:
    """What each attacker sends is a vector like the model: real numbers, or what a gate rejects.

    Values that are not finite are allowed: the gate rejects them, and the round goes on.
    """
    for index in (1, 2):
        toy = _toy(attack, index=index)
        for attacker in range(ATTACKERS):
            _require_vector(toy.update(attacker), toy.start, f"round {index}: the update")
        sent, plot = toy.sent()
        wanted = (ATTACKERS, len(toy.start))
        have = tuple(sent.shape)
        require(have == wanted, f"agree gave updates of shape {have}, not {wanted}")
        for name, value in ({} if plot is None else plot.facts).items():
            good = isinstance(value, int | float) and math.isfinite(value)
            require(good, f"agree gave the figure {name!r} = {value!r}, not a finite number")


def what_it_is_given_stays(attack: Attack) -> None:
    """Neither the models, the data, the state nor the view change; what it sends is its own."""
    toy = _toy(attack)
    context = toy.context()
    given = tensors_of((toy.data, context.start, context.previous, context.first, toy.state))
    before = [(tensor.clone(), tensor._version) for tensor in given]
    update = attack.update(toy.trainer(), toy.data, context)
    rows = torch.stack([update, update])
    view = toy.view(rows)
    seen = [view.round.updates, view.stand_ins, view.first]
    before += [(tensor.clone(), tensor._version) for tensor in seen]
    attack.agree(view)
    for tensor, (copy, version) in zip([*given, *seen], before, strict=True):
        same = torch.equal(tensor.nan_to_num(), copy.nan_to_num())
        require(same and tensor._version == version, "it wrote to what it was given")
    for tensor in given:
        apart = update.untyped_storage().data_ptr() != tensor.untyped_storage().data_ptr()
        require(apart, "the update shares memory with what it was given")


def same_seed_same_bits(attack: Attack) -> None:
    """Two calls give the same bits, whoever trained before and whatever torch drew before.

    A worker trains many clients one after another: nothing of them may be left. Dropout draws from
    torch's own generator; `datadefense.attacks.base.seed_module` seeds it.
    """
    toy = _toy(attack)
    trainer = toy.trainer()
    first = toy.update(trainer=trainer)
    toy.update(attacker=1, trainer=trainer)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(12345)
        again = toy.update(trainer=trainer)
    require(_same(first, again), "two calls gave two updates")
    (first, _), (second, _) = toy.sent(), toy.sent()
    require(_same(first, second), "the attackers agreed on something else at the second time")


def honest_trainings_never_fewer(attack: Attack) -> None:
    """`honest_trainings` is a number >= 0 that does not fall when there are more others.

    A run makes room once, for a round with one attacker; with more of them the others are fewer.
    """
    last = 0
    for others in range(MOST_OTHERS + 1):
        wanted = attack.honest_trainings(others)
        counts = isinstance(wanted, int) and not isinstance(wanted, bool) and wanted >= 0
        require(counts, f"honest_trainings({others}) gave {wanted!r}")
        require(wanted >= last, f"honest_trainings({others}) = {wanted} < {last} of fewer others")
        last = wanted


def state_survives_a_file(attack: Attack) -> None:
    """Saved and loaded between rounds, it goes on to the same bits; the state it got stays."""
    state, toy = attack.init(_toy(attack, index=1).start), _toy(attack, index=1)
    sent, _ = toy.sent()
    copies = [tensor.clone() for tensor in tensors_of(state)]
    after = attack.remember(state, sent, replace(toy.context(), state=state))
    for tensor, copy in zip(tensors_of(state), copies, strict=True):
        require(_same(tensor, copy), "remember wrote to the state that it was given")
    with TemporaryDirectory() as folder:
        path = Path(folder) / "state.safetensors"
        try:
            save_state(path, after)
            restored = load_state(path, like=state)
        except StateError as error:
            raise BrokenLawError(f"the state cannot be saved and loaded: {error}") from error
    straight, resumed = (_toy(attack, index=2, state=memory) for memory in (after, restored))
    require(_same(straight.update(), resumed.update()), "the resumed attack sent another update")
    straight_state, resumed_state = (
        attack.remember(toy.state, toy.sent()[0], toy.context()) for toy in (straight, resumed)
    )
    require(
        _same_state(straight_state, resumed_state), "the resumed attack remembers something else"
    )


def state_rests_on_no_lent_memory(attack: Attack) -> None:
    """What it remembers stays as it is when the memory of the round is used again."""
    toy = _toy(attack, index=1)
    lent = toy.start.clone()
    state = attack.init(lent)
    copies = [tensor.clone() for tensor in tensors_of(state)]
    lent.fill_(1e3)
    same = all(map(_same, tensors_of(state), copies))
    require(same, "the first state changed when the model's memory was used again")
    sent, context = toy.sent()[0].clone(), toy.context()
    borrowed = replace(context, start=context.start.clone(), first=context.first.clone())
    after = attack.remember(attack.init(toy.start), sent, borrowed)
    copies = [tensor.clone() for tensor in tensors_of(after)]
    for tensor in (sent, borrowed.start, borrowed.first):
        tensor.fill_(-1e3)
    same = all(map(_same, tensors_of(after), copies))
    require(same, "the state changed when the round's memory was used again")


ATTACK_LAWS: tuple[AttackLaw, ...] = (
    settings_are_plain,
    threat_is_declared,
    honest_trainings_never_fewer,
    update_is_a_vector,
    what_it_is_given_stays,
    same_seed_same_bits,
    state_survives_a_file,
    state_rests_on_no_lent_memory,
)


def check_attack(attack: Attack) -> None:
    """Hold an attack to every law, in a toy federation; takes a few seconds at most.

    Raises BrokenLawError (an AssertionError) with the law's name.

    >>> from datadefense.attacks import DataPoisoning
    >>> check_attack(DataPoisoning())
    """
    require_plugin(attack, Attack, check_attack)
    with one_thread():
        for law in ATTACK_LAWS:
            with naming(attack, law):
                law(attack)


def _toy(attack: Attack, index: int = 2, state: Any = None) -> ToyAttacker:
    """Return attackers who remember what they would at the beginning, unless told otherwise."""
    toy = ToyAttacker(attack, index=index, state=state)
    if state is not None:
        return toy
    return ToyAttacker(attack, index=index, state=attack.init(toy.start))


def _require_vector(update: Any, like: Tensor, what: str) -> None:
    require(isinstance(update, Tensor), f"{what} is a {type(update).__name__}, not a tensor")
    have, wanted = (tuple(update.shape), update.dtype), (tuple(like.shape), like.dtype)
    require(have == wanted, f"{what} is {have}, the model is {wanted}")


def _same(first: Tensor, second: Tensor) -> bool:
    """Say whether two tensors have the same bits; what is not a number is the same as itself."""
    return torch.equal(first.isnan(), second.isnan()) and torch.equal(
        first.nan_to_num(), second.nan_to_num()
    )


def _same_state(first: Any, second: Any) -> bool:
    """Say whether two states have the same tree of values, and tensors with the same bits."""
    first_tensors: dict[str, Tensor] = {}
    second_tensors: dict[str, Tensor] = {}
    if encode(first, "state", first_tensors) != encode(second, "state", second_tensors):
        return False
    return all(_same(first_tensors[name], second_tensors[name]) for name in first_tensors)
