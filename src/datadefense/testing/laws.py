"""The laws, one function each; a broken one raises BrokenLawError and says by how much."""

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from datadefense.core.defend import defend
from datadefense.core.defense import Defense, Promise
from datadefense.core.gate import Admission, Rejection
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.storage import load_state, save_state
from datadefense.defenses.pipeline import Part, Pipeline
from datadefense.testing.broken import (
    naming,
    require,
    require_close,
    require_equal,
    require_finite,
    require_plugin,
    tensors_of,
    weights_of,
)
from datadefense.testing.hostile_laws import (
    attackers_cannot_make_it_work,
    nothing_rests_on_the_rounds_memory,
    what_it_says_is_finite,
)
from datadefense.testing.outcome_laws import everybody_has_an_outcome
from datadefense.testing.settings_laws import require_name, require_plain_settings
from datadefense.testing.toy import toy_layout, toy_round, toy_server

Law = Callable[[Defense[Any], Server], None]
SIZES = (1e-44, -1e-30, 0.0, 10.0, -1e3, 1e6, 1e12, -1e20, 1e30, -1e38)
"""What the coordinates of a malicious update are set to."""


def run(defense: Defense[Any], round: Round, server: Server) -> Aggregate[Any]:
    """Aggregate one round from a fresh state."""
    return defense.aggregate(defense.init(server, round.global_params), round, server)


def settings_are_plain(defense: Defense[Any], _server: Server) -> None:
    """Each part is a frozen dataclass with a name, plain settings and stated promises."""
    for part in parts_of(defense):
        require_name(part)
        require_plain_settings(part)
        if isinstance(part, Defense):
            classes = [cls for cls in type(part).__mro__ if cls is not Defense]
            stated = any("promises" in vars(cls) for cls in classes)
            good = stated and isinstance(part.promises, Promise)
            require(good, "promises must be stated: Promise.NONE if it promises nothing")


def parts_of(defense: Defense[Any]) -> tuple[Part, ...]:
    """Return the parts of a pipeline, or the defense itself."""
    return defense.parts() if isinstance(defense, Pipeline) else (defense,)


def inputs_are_untouched(defense: Defense[Any], server: Server) -> None:
    """Neither the round nor the state changes under ``aggregate``."""
    round = toy_round()
    state = defense.init(server, round.global_params)
    tensors = [round.global_params, round.updates, round.num_examples, *tensors_of(state)]
    before = [(tensor.clone(), tensor._version) for tensor in tensors]
    result = defense.aggregate(state, round, server)
    for tensor, (copy, version) in zip(tensors, before, strict=True):
        require_equal(tensor, copy, "aggregate changed its input")
        require(tensor._version == version, "aggregate wrote to its input")
    for tensor in tensors:
        apart = result.params.data_ptr() != tensor.data_ptr()
        require(apart, "the result shares memory with input")


def same_input_same_bits(defense: Defense[Any], server: Server) -> None:
    """Two calls give the same model, weights and next state, to the bit."""
    first, second = (run(defense, toy_round(), server) for _ in range(2))
    require_equal(first.params, second.params, "two calls gave two models")
    for tensor, again in zip(tensors_of(first.state), tensors_of(second.state), strict=True):
        require_equal(tensor, again, "two calls gave two states")
    if first.weights is not None and second.weights is not None:
        require_equal(first.weights, second.weights, "two calls gave two sets of weights")


def result_is_well_formed(defense: Defense[Any], server: Server) -> None:
    """Model, weights and evidence have the right shapes; all are finite; weights are >= 0.

    Unless the defense says that they may be negative.
    """
    round = toy_round()
    result = run(defense, round, server)
    have = (tuple(result.params.shape), result.params.dtype)
    wanted = (tuple(round.global_params.shape), round.global_params.dtype)
    require(have == wanted, f"the model is {have}, global_params are {wanted}")
    require_finite(result.params, "the model is not finite")
    require("fallback" not in result.report, f"fell back on a normal round: {result.report}")
    if result.weights is not None:
        shape = tuple(result.weights.shape)
        require(shape == (round.num_clients,), f"weights have shape {shape}, not one a client")
        signed = Promise.SIGNED in defense.promises
        require(signed or bool((result.weights >= 0).all()), "a weight is negative")
    for name, values in result.evidence.items():
        one_each = values.shape == (round.num_clients,)
        require(one_each, f"evidence {name!r} is not one number a client")
        require_finite(values, f"evidence {name!r} is not finite")
    if Promise.SUMS_TO_ONE in defense.promises:
        total = weights_of(result, "SUMS_TO_ONE").sum()
        require_close(total, torch.tensor(1.0), "the sum of the weights")
    if Promise.WEIGHTED in defense.promises:
        expected = round.global_params + weights_of(result, "WEIGHTED") @ round.updates
        if length := result.report.get("corrected"):
            gap = torch.linalg.vector_norm(result.params - expected)
            require_close(gap, torch.tensor(length), "the length of the correction")
        else:
            what = "the model and global_params + weights @ updates"
            require_close(result.params, expected, what)


def order_of_clients_does_not_matter(defense: Defense[Any], server: Server) -> None:
    """Permuting the clients permutes the weights and leaves the model (SYMMETRIC)."""
    if Promise.SYMMETRIC not in defense.promises:
        return
    round = toy_round()
    order = torch.arange(round.num_clients).flip(0).roll(3)
    shuffled = replace(
        round,
        updates=round.updates[order],
        num_examples=round.num_examples[order],
        client_ids=tuple(round.client_ids[j] for j in order.tolist()),
    )
    plain, permuted = run(defense, round, server), run(defense, shuffled, server)
    require_close(permuted.params, plain.params, "the models of two orders of the same clients")
    if plain.weights is not None and permuted.weights is not None:
        require_close(permuted.weights, plain.weights[order], "the permuted weights")


def global_model_is_only_added(defense: Defense[Any], server: Server) -> None:
    """Moving the global model moves the result by as much (TRANSLATES)."""
    if Promise.TRANSLATES not in defense.promises:
        return
    round = toy_round()
    shift = torch.linspace(-2, 2, len(round.global_params))
    moved = replace(round, global_params=round.global_params + shift)
    plain, result = run(defense, round, server), run(defense, moved, server)
    require_close(result.params, plain.params + shift, "the moved model", tolerance=1e-5)


def equal_updates_come_back(defense: Defense[Any], server: Server) -> None:
    """When all clients send the same update, it is applied (UNANIMOUS)."""
    round = toy_round()
    update = round.updates[0]
    same = replace(round, updates=update.repeat(round.num_clients, 1))
    result = run(defense, same, server)
    require_finite(result.params, "identical clients gave a model that is not finite")
    if Promise.UNANIMOUS in defense.promises:
        require_close(result.params, round.global_params + update, "the model after equal updates")


def size_does_not_help_an_attacker(defense: Defense[Any], server: Server) -> None:
    """F updates of any size move the model hardly farther than moderate ones do (BOUNDED)."""
    if Promise.BOUNDED not in defense.promises:
        return
    malicious = defense.assumed_malicious()
    round = toy_round(4 * malicious + 7)

    def moved(size: float) -> float:
        updates = round.updates.clone()
        updates[:malicious] = size
        result = run(defense, replace(round, updates=updates), server)
        distance = float((result.params.double() - round.global_params.double()).norm())
        require(math.isfinite(distance), f"updates of {size:g} gave a model that is not finite")
        return distance

    longest = float(round.updates.norm(dim=1).max())
    limit = 3 * max(longest, moved(1.0), moved(-1.0))
    for size in SIZES:
        distance = moved(size)
        require(
            distance <= limit,
            f"updates of {size:g} moved the model by {distance:g} > {limit:g}",
        )


def small_rounds_are_survived(defense: Defense[Any], server: Server) -> None:
    """One client, two, three ...: an answer that is finite, and no exception."""
    for clients in range(1, 8):
        round = toy_round(clients)
        result = run(defense, round, server)
        require_finite(result.params, f"{clients} clients: not finite")
        if problem := defense.shortage(clients):
            fallback = str(result.report.get("fallback", ""))
            says_so = fallback.startswith(problem)
            require(says_so, f"{clients} clients: the report does not say why")


def zero_updates_are_survived(defense: Defense[Any], server: Server) -> None:
    """Clients that learned nothing, some or all of them."""
    for clients in (3, 11):
        round = toy_round(clients)
        updates = round.updates.clone()
        updates[: clients // 2] = 0
        for matrix in (updates, torch.zeros_like(updates)):
            result = run(defense, replace(round, updates=matrix), server)
            require_finite(result.params, "zero updates gave a model not finite")


def rejects_are_survived(defense: Defense[Any], server: Server) -> None:
    """Behind the gate: a round without the rejected, and a round without anybody."""
    round = toy_round(9)
    state = defense.init(server, round.global_params)
    rejected = (Rejection("stranger", "3 of 603 values are not finite"),)
    layout = toy_layout()
    start = round.global_params
    result = defend(defense, state, Admission(round, rejected, layout), start, server)
    require_finite(result.params, "the model behind the gate is not finite")
    empty = defend(defense, state, Admission(None, rejected, layout), start, server)
    require_equal(empty.params, round.global_params, "nobody was admitted: the model moved")
    require(empty.report["held"] == "no update was admitted", "the report does not say why")


def state_survives_a_file(defense: Defense[Any], server: Server) -> None:
    """Saved and loaded between rounds, a defense goes on to the same bits."""
    first, second = toy_round(seed=1), toy_round(seed=2)
    start = defense.init(server, first.global_params)
    state = defense.aggregate(start, first, server).state
    with TemporaryDirectory() as folder:
        save_state(Path(folder) / "state.safetensors", state)
        restored = load_state(Path(folder) / "state.safetensors", like=start)
    for tensor, restored_tensor in zip(tensors_of(state), tensors_of(restored), strict=True):
        require_equal(tensor, restored_tensor, "a tensor of the state changed in the file")
    straight = defense.aggregate(state, second, server)
    resumed = defense.aggregate(restored, second, server)
    require_equal(straight.params, resumed.params, "the resumed defense went another way")


def what_is_sent_is_a_model(defense: Defense[Any], server: Server) -> None:
    """``sent`` gives a model, twice the same, and writes to nothing; the global one by default."""
    round = toy_round()
    params, state = round.global_params, defense.init(server, round.global_params)
    tensors = [params, *tensors_of(state)]
    before = [(tensor.clone(), tensor._version) for tensor in tensors]
    first, second = (defense.sent(state, params, server, round.index) for _ in range(2))
    have, wanted = (tuple(first.shape), first.dtype), (tuple(params.shape), params.dtype)
    require(have == wanted, f"the model to send is {have}, global_params are {wanted}")
    require_finite(first, "the model to send is not finite")
    require_equal(first, second, "two calls gave two models to send")
    for tensor, (copy, version) in zip(tensors, before, strict=True):
        require_equal(tensor, copy, "sent changed its input")
        require(tensor._version == version, "sent wrote to its input")
    if type(defense).sent is Defense.sent:
        require_equal(first, params, "the model to send is not the global one")


LAWS: tuple[Law, ...] = (
    settings_are_plain,
    inputs_are_untouched,
    same_input_same_bits,
    result_is_well_formed,
    order_of_clients_does_not_matter,
    global_model_is_only_added,
    equal_updates_come_back,
    size_does_not_help_an_attacker,
    small_rounds_are_survived,
    zero_updates_are_survived,
    rejects_are_survived,
    everybody_has_an_outcome,
    state_survives_a_file,
    nothing_rests_on_the_rounds_memory,
    what_it_says_is_finite,
    attackers_cannot_make_it_work,
    what_is_sent_is_a_model,
)


def check_defense(defense: Defense[Any], server: Server | None = None) -> None:
    """Hold a defense to every law and to its own promises.

    Raises BrokenLawError (an AssertionError) with the law's name. ``server`` defaults to a toy
    server whose model has `datadefense.testing.TOY_DIM` parameters, the dimension of the rounds
    that the laws use.

    >>> from datadefense.defenses import Krum
    >>> check_defense(Krum(num_malicious=2))
    """
    require_plugin(defense, Defense, check_defense)
    for law in LAWS:
        with naming(defense, law):
            law(defense, server or toy_server())
