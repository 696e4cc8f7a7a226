"""Assembly: from an experiment to the federation and the server that carry it out."""

import copy
from collections.abc import Callable
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.poison_variants import LOOKS
from datadefense.core.defense_set import DefenseSet
from datadefense.core.examples import Examples
from datadefense.core.features import penultimate
from datadefense.core.predictor import Layout, predictor
from datadefense.core.rng import derive_seed, generator
from datadefense.core.server import Server
from datadefense.core.settings import SettingsError
from datadefense.data.cache import cache_folder
from datadefense.data.partition import by_user, dirichlet, iid
from datadefense.defense_sets.pinning import owned_set
from datadefense.defense_sets.suggested_poison import SUGGESTED, with_suggested_poison
from datadefense.runs.config import Experiment
from datadefense.runs.warm_start import Report, warm_start
from datadefense.simulation.federation import Federation
from datadefense.simulation.shards import Shards
from datadefense.tasks.base import TaskData
from datadefense.tasks.digits_edge import digits_edge
from datadefense.tasks.images import image_material
from datadefense.tasks.second_backdoor import with_second_backdoor
from datadefense.tasks.sentiment import tweet_material

Encode = Callable[[Tensor], Tensor]
CLEAN, POISONED = "clean", "poisoned"
"""Where an example of the defense set came from; only the measuring of hits looks at it."""


def assemble(
    experiment: Experiment, data_dir: Path | None = None, report: Report | None = None
) -> tuple[Federation, Server]:
    """Deal out the data and build the federation and its server."""
    material = gather(experiment, data_dir)
    shards = Shards.of(_partition(experiment, material))
    brought = owned_set(experiment, material)
    make_set = _defense_set(experiment, material) if brought is None else brought.defense_set
    start = warm_start(experiment, material, cache_folder(), report)
    layout = Layout.of_module(material.module)
    attack = experiment.make_attack()
    attacker_data = None
    if attack is not None:
        ordinary = round(len(material.clients) / len(shards))
        attacker_data = attack.twist.holdings(material.attacker, ordinary)
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
        attacker_data=attacker_data,
        augment=material.augment,
        seed=experiment.seed,
        vocabulary=material.vocabulary,
    )
    predict = predictor(material.module, layout)
    owned = make_set(_encoder(material, layout, start))
    root_set = owned.examples.take(owned.known_clean.nonzero().flatten())
    return federation, Server(predict, root_set, experiment.seed, owned)


def _encoder(material: TaskData, layout: Layout, start: Float[Tensor, " dim"]) -> Encode:
    """Return the encoder of the defense set: the model that the run begins with."""
    module = copy.deepcopy(material.module)
    module.load_state_dict(layout.unflatten(start), strict=False)
    return lambda inputs: penultimate(module, inputs)


def _defense_set(experiment: Experiment, material: TaskData) -> Callable[[Encode], DefenseSet]:
    """Return what makes a set of the setup's own examples, once there is an encoder.

    The known clean ones come first and the poisoned ones last. Wrong marks are on the first
    poisoned examples instead of the last known clean ones.
    """
    clean, poison = _server_clean(experiment, material), material.server_poison
    examples = clean.join(poison)
    wrong = round(experiment.wrong_marks_percent / 100 * experiment.server_clean)
    if wrong > len(poison):
        raise SettingsError(
            f"wrong marks must be on poisoned examples: {wrong} <= {len(poison)} of them"
        )
    places = torch.arange(len(examples))
    known = places < experiment.server_clean - wrong
    known |= (places >= len(clean)) & (places < len(clean) + wrong)
    origin = (CLEAN,) * len(clean) + (POISONED,) * len(poison)
    return lambda encode: DefenseSet(examples, known, encode(examples.inputs), provenance=origin)


def _server_clean(experiment: Experiment, material: TaskData) -> Examples:
    """Return the clean examples of the defense set, those that will be known first."""
    clean, wanted = material.server_clean, experiment.defense_clean
    if wanted > len(clean):
        raise SettingsError(f"defense_clean must be <= {len(clean)}, got {wanted}")
    if experiment.marked_class is None:
        return clean.take(torch.arange(wanted))
    of_class = clean.labels == experiment.marked_class
    if int(of_class.sum()) < experiment.server_clean:
        raise SettingsError(
            f"server_clean must be <= examples of class {experiment.marked_class}, "
            f"got {experiment.server_clean} > {int(of_class.sum())}"
        )
    return clean.take((~of_class).to(torch.int8).argsort(stable=True)[:wanted])


def _partition(experiment: Experiment, material: TaskData) -> list[Tensor]:
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


def _test(experiment: Experiment, material: TaskData) -> Examples:
    """Return the test set, or a part of it drawn once for all seeds."""
    wanted = experiment.test_examples
    if not 0 < wanted < len(material.test):
        return material.test
    order = torch.randperm(len(material.test), generator=generator(0, "test"))
    return material.test.take(order[:wanted])


def gather(experiment: Experiment, data_dir: Path | None) -> TaskData:
    """Return the material of the experiment's setup; the module is initialised by the seed."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(derive_seed(experiment.warm_seed, "model"))
        material = _of_setup(experiment, data_dir)
    if experiment.poison_view in SUGGESTED:
        material = with_suggested_poison(material, experiment.poison_view, experiment.seed)
    if experiment.second_backdoor == "none":
        return material
    return with_second_backdoor(material, experiment.second_backdoor == "known")


def _of_setup(experiment: Experiment, data_dir: Path | None) -> TaskData:
    if experiment.setup.startswith(("digits", "sentiment")) and experiment.poison_view in LOOKS:
        raise SettingsError(
            f"poison_view must be same with {experiment.setup}, or one of "
            f"{', '.join(SUGGESTED)}, got {experiment.poison_view!r}"
        )
    if experiment.setup == "digits-edge":
        return digits_edge(experiment)
    if experiment.setup == "sentiment-yl":
        return tweet_material(experiment, data_dir)
    return image_material(experiment, data_dir)
