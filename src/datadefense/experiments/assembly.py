"""Assembly: from an experiment to the federation and the server that carry it out."""

import copy
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.data.cache import cache_folder
from datadefense.data.partition import by_user, dirichlet, iid
from datadefense.defense_set import DefenseSet
from datadefense.examples import Examples
from datadefense.experiments.digits import digits_edge
from datadefense.experiments.experiment import Experiment
from datadefense.experiments.images import image_material
from datadefense.experiments.material import Material, with_guess
from datadefense.experiments.tweets import tweet_material
from datadefense.experiments.warm_start import Report, warm_start
from datadefense.models.features import penultimate
from datadefense.params import Layout, predictor
from datadefense.rng import derive_seed, generator
from datadefense.server import Server
from datadefense.settings import SettingsError
from datadefense.simulation.federation import Federation
from datadefense.simulation.shards import Shards

CLEAN, POISONED = "clean", "poisoned"
"""Where an example of the defense set came from; only the measuring of hits looks at it."""


def assemble(
    experiment: Experiment, data_dir: Path | None = None, report: Report | None = None
) -> tuple[Federation, Server]:
    """Deal out the data and build the federation and its server."""
    material = gather(experiment, data_dir)
    shards = Shards.of(_partition(experiment, material))
    clean = material.server_clean
    if experiment.server_clean > len(clean):
        raise SettingsError(f"server_clean must be <= {len(clean)}, got {experiment.server_clean}")
    root_set = clean.take(torch.arange(experiment.server_clean))
    start = warm_start(experiment, material, cache_folder(), report)
    layout = Layout.of_module(material.module)
    attack = experiment.make_attack()
    loot = with_guess(material.attacker) if experiment.attack == "adaptive" else material.attacker
    federation = Federation(
        module=material.module,
        layout=layout,
        start=start,
        train=material.clients,
        shards=shards,
        test=_test(experiment, material),
        backdoor_test=material.backdoor_test,
        training=experiment.honest_training(),
        schedule=experiment.make_schedule(),
        clients_per_round=experiment.clients_per_round,
        attack=attack,
        loot=None if attack is None else loot,
        augment=material.augment,
        seed=experiment.seed,
    )
    predict = predictor(material.module, layout)
    owned = _defense_set(experiment, material, layout, start)
    return federation, Server(predict, root_set, experiment.seed, owned)


def _defense_set(
    experiment: Experiment, material: Material, layout: Layout, start: Float[Tensor, " dim"]
) -> DefenseSet:
    """Return the server's examples, the known clean ones first and the poisoned ones last.

    The encoder is the model that the run begins with.
    """
    examples = material.server_clean.join(material.server_poison)
    module = copy.deepcopy(material.module)
    module.load_state_dict(layout.unflatten(start), strict=False)
    known = torch.arange(len(examples)) < experiment.server_clean
    origin = (CLEAN,) * len(material.server_clean) + (POISONED,) * len(material.server_poison)
    features = penultimate(module, examples.inputs)
    return DefenseSet(examples, known, features, provenance=origin)


def _partition(experiment: Experiment, material: Material) -> list[Tensor]:
    """Return the examples of each client."""
    draw, clients = generator(experiment.seed, "partition"), experiment.clients
    if experiment.partition == "iid":
        return iid(len(material.clients), clients, draw)
    if experiment.partition == "dirichlet":
        return dirichlet(material.clients.labels, clients, experiment.alpha, draw)
    if material.users is None:
        raise SettingsError(
            f"partition must be iid or dirichlet: nobody's name is in this copy of "
            f"{experiment.dataset}"
        )
    try:
        return by_user(material.users, draw, clients)
    except ValueError as error:
        raise SettingsError(str(error)) from error


def _test(experiment: Experiment, material: Material) -> Examples:
    """Return the test set, or a part of it drawn once for all seeds."""
    wanted = experiment.test_examples
    if not 0 < wanted < len(material.test):
        return material.test
    order = torch.randperm(len(material.test), generator=generator(0, "test"))
    return material.test.take(order[:wanted])


def gather(experiment: Experiment, data_dir: Path | None) -> Material:
    """Return the material of the experiment's setup; the module is initialised by the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(experiment.warm_seed, "model"))
        if experiment.setup == "digits-edge":
            return digits_edge(experiment)
        if experiment.setup == "sentiment-yl":
            return tweet_material(experiment, data_dir)
        return image_material(experiment, data_dir)
