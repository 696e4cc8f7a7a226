"""Build: from an experiment to the federation and the server that carry it out."""

import copy
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.compute import Compute
from datadefense.core.defense_set import DefenseSet
from datadefense.core.examples import Examples
from datadefense.core.features import penultimate
from datadefense.core.needs import Need
from datadefense.core.predictor import Layout, Predictor, predictor
from datadefense.core.rng import derive_seed, generator
from datadefense.core.server import Server
from datadefense.core.settings import SettingsError
from datadefense.data.cache import cache_folder
from datadefense.data.errors import DataError
from datadefense.data.partition import by_user, dirichlet, iid
from datadefense.defense_sets.folder import CLEAN, POISONED
from datadefense.defense_sets.pinning import folder_set
from datadefense.defense_sets.suggested_poison import SUGGESTED, with_suggested_poison
from datadefense.runs.compute_choice import Timed, chosen_compute, settled
from datadefense.runs.config import Experiment
from datadefense.runs.warm_start import Report, warm_start
from datadefense.simulation.federation import Federation
from datadefense.simulation.shards import Shards
from datadefense.tasks.base import TaskData
from datadefense.tasks.second_backdoor import with_second_backdoor

Encode = Callable[[Tensor], Tensor]
SAME = "same"
"""Poison of the server that looks as the attacker's does."""


def assemble(
    experiment: Experiment, folder: Path | None = None, report: Report | None = None
) -> tuple[Federation, Server]:
    """Deal out the data and build the federation and its server.

    How their passes are computed is chosen here, where the experiment leaves it open. The first
    model is trained in float32 always: runs of either precision begin with the same one.
    """
    data = load_data(experiment, folder)
    shards = Shards.of(_partition(experiment, data))
    make_set = _folder_set(experiment, data) or _tasks_own_set(experiment, data)
    timed = Timed(data.module, data.clients, experiment.federation.training())
    training, serving = chosen_compute(experiment.compute, timed, cache_folder())
    start = warm_start(
        experiment.warm, data, cache_folder(), report, Compute(memory_format=training.memory_format)
    )
    layout = Layout.of_module(data.module)
    attack = experiment.attack
    usual = round(len(data.clients) / len(shards))
    federation = Federation(
        module=data.module,
        layout=layout,
        start=start,
        train=data.clients,
        shards=shards,
        test=_test(experiment, data),
        backdoor_test=data.backdoor_test,
        training=experiment.federation.training(),
        schedule=experiment.schedule,
        clients_per_round=experiment.federation.clients_per_round,
        attack=attack,
        attacker_data=None if attack is None else attack.holdings(data.attacker, usual),
        augment=data.augment,
        seed=experiment.seed,
        vocabulary=data.vocabulary,
        compute=training,
    )
    predict = predictor(data.module, layout, serving)
    defense_set = make_set(_encoder(data, layout, start))
    root_set = defense_set.examples.take(defense_set.known_clean.nonzero().flatten())
    return federation, Server(predict, root_set, experiment.seed, defense_set)


def with_choice(experiment: Experiment, federation: Federation, server: Server) -> Experiment:
    """Return the experiment that says how its passes are computed, and on which processor."""
    predict = server.predict
    if federation.compute is None or not isinstance(predict, Predictor):
        return experiment
    if experiment.compute.processor is not None:
        return experiment
    return replace(experiment, compute=settled(federation.compute, predict.compute))


def load_data(experiment: Experiment, folder: Path | None) -> TaskData:
    """Return the task's data as this experiment deals it; the module is initialised by a seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(experiment.warm.seed, "model"))
        data = experiment.task.load(folder, experiment.seed)
    data = _with_server_poison(experiment, data)
    if data.second_backdoor == "none":
        return data
    return with_second_backdoor(data, data.second_backdoor == "known")


def _with_server_poison(experiment: Experiment, data: TaskData) -> TaskData:
    """Return the data with as much poison for the server as it wants, in the look that it wants."""
    wanted, view, there = (
        experiment.server.poison,
        experiment.server.poison_view,
        len(data.server_poison),
    )
    if wanted > there and not data.few_poisoned:
        raise SettingsError(
            f"server.poison must be <= {there}, the poisoned examples that "
            f"{experiment.name_of('task')} has for its server, got {wanted}"
        )
    found = data.server_poison.take(torch.arange(min(wanted, there)))
    views = (SAME, *data.variants, *SUGGESTED)
    if view not in views:
        raise SettingsError(
            f"server.poison_view must be one of {', '.join(views)} with "
            f"{experiment.name_of('task')}, got {view!r}"
        )
    if view in data.variants:
        found = data.variants[view](found, experiment.seed)
    data = replace(data, server_poison=found)
    return with_suggested_poison(data, view, experiment.seed) if view in SUGGESTED else data


def _folder_set(experiment: Experiment, data: TaskData) -> Callable[[Encode], DefenseSet] | None:
    """Return what makes the experiment's own defense set; None if it has the task's."""
    server = experiment.server
    if server.folder is None:
        return None
    brought = folder_set(
        Path(server.folder), server.digest, data, experiment.name_of("task"), experiment.seed
    )
    needed = Need.CLEAN_EXAMPLES in experiment.defense.needs
    if needed and not bool(brought.source.known_clean.any()):
        raise DataError(
            f"{server.folder}: {experiment.name_of('defense')} needs clean examples, and none is "
            "marked as known clean"
        )
    return brought.defense_set


def _encoder(data: TaskData, layout: Layout, start: Float[Tensor, " dim"]) -> Encode:
    """Return the encoder of the defense set: the model that the run begins with."""
    module = copy.deepcopy(data.module)
    module.load_state_dict(layout.unflatten(start), strict=False)
    return lambda inputs: penultimate(module, inputs)


def _tasks_own_set(experiment: Experiment, data: TaskData) -> Callable[[Encode], DefenseSet]:
    """Return what makes a set of the task's own examples, once there is an encoder.

    The known clean ones come first and the poisoned ones last. Wrong marks are on the first
    poisoned examples instead of the last known clean ones.
    """
    server = experiment.server
    clean, poison = _server_clean(experiment, data), data.server_poison
    examples = clean.join(poison)
    wrong = round(server.wrong_marks_percent / 100 * server.known_clean)
    if wrong > len(poison):
        raise SettingsError(
            f"wrong marks must be on poisoned examples: {wrong} <= {len(poison)} of them"
        )
    places = torch.arange(len(examples))
    known = places < server.known_clean - wrong
    known |= (places >= len(clean)) & (places < len(clean) + wrong)
    origin = (CLEAN,) * len(clean) + (POISONED,) * len(poison)
    return lambda encode: DefenseSet(examples, known, encode(examples.inputs), provenance=origin)


def _server_clean(experiment: Experiment, data: TaskData) -> Examples:
    """Return the clean examples of the defense set, those that will be known first."""
    clean, server = data.server_clean, experiment.server
    if server.clean > len(clean):
        raise SettingsError(f"server.clean must be <= {len(clean)}, got {server.clean}")
    if server.marked_class is None:
        return clean.take(torch.arange(server.clean))
    of_class = clean.labels == server.marked_class
    if int(of_class.sum()) < server.known_clean:
        raise SettingsError(
            f"server.known_clean must be <= examples of class {server.marked_class}, "
            f"got {server.known_clean} > {int(of_class.sum())}"
        )
    return clean.take((~of_class).to(torch.int8).argsort(stable=True)[: server.clean])


def _partition(experiment: Experiment, data: TaskData) -> list[Tensor]:
    """Return the examples of each client."""
    federation, draw = experiment.federation, generator(experiment.seed, "partition")
    if federation.partition == "iid":
        return iid(len(data.clients), federation.clients, draw)
    if federation.partition == "dirichlet":
        return dirichlet(data.clients.labels, federation.clients, federation.alpha, draw)
    if data.users is None:
        raise SettingsError(
            "partition must be iid or dirichlet: there are no users in this copy of the data of "
            f"{experiment.name_of('task')}"
        )
    try:
        return by_user(data.users, draw, federation.clients)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _test(experiment: Experiment, data: TaskData) -> Examples:
    """Return the test set, or a part of it drawn once for all seeds."""
    wanted = experiment.evaluation.test_examples
    if not 0 < wanted < len(data.test):
        return data.test
    order = torch.randperm(len(data.test), generator=generator(0, "test"))
    return data.test.take(order[:wanted])
