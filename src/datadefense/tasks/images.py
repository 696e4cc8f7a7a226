"""The material of the image setups: CIFAR-10, CIFAR-100, digits with ARDIS sevens."""

from pathlib import Path

import torch
from torch import Tensor, nn

from datadefense.attacks import poison
from datadefense.attacks.base import AttackerData
from datadefense.attacks.poison_variants import LOOKS, other_poison, without_trigger
from datadefense.attacks.pools import PoolSizes, split_pools
from datadefense.attacks.trigger_patch import TriggerPatch, stamp_randomly
from datadefense.core.examples import Examples
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.data.catalog import load_images
from datadefense.data.digits import uci_sevens
from datadefense.runs.config import Experiment
from datadefense.tasks.augment import crop_and_flip
from datadefense.tasks.base import Aim, TaskData, deal
from datadefense.tasks.models.mnist_net import mnist_net
from datadefense.tasks.models.normalised import Normalised
from datadefense.tasks.models.vgg9 import vgg9

SERVER = 400
"""Clean examples that are set aside for the server."""
CIFAR_MEAN, CIFAR_DEVIATION = (0.4914, 0.4822, 0.4465), (0.2470, 0.2435, 0.2616)
DIGIT_MEAN, DIGIT_DEVIATION = (0.1307,), (0.3081,)
CLASSES = {"cifar10": 10, "cifar100": 100, "mnist": 10, "emnist-digits": 10}


def image_material(experiment: Experiment, data_dir: Path | None) -> TaskData:
    """Load a data set and its poison, and deal them out."""
    if experiment.dataset not in CLASSES:
        raise SettingsError(
            f"dataset must be one of {', '.join(CLASSES)} here, got {experiment.dataset!r}"
        )
    train = load_images(experiment.dataset, data_dir, "train")
    test = load_images(experiment.dataset, data_dir, "test")
    draw = generator(experiment.seed, "poison")
    attack_set = _attack_set(experiment, data_dir, train, test, draw)
    sizes = PoolSizes(experiment.attack_poison, experiment.server_poison)
    if experiment.sevens == "uci":
        left = len(attack_set.train) - experiment.attack_poison
        sizes = PoolSizes(experiment.attack_poison, min(experiment.server_poison, left))
    pools = split_pools(attack_set, sizes, draw, experiment.overlap)
    found = pools.defense
    plain = _plain(experiment, train, test)
    if experiment.poison_view in LOOKS:
        found = other_poison(experiment.poison_view, found, attack_set, plain, experiment.seed)
    server, attacker, clients = deal(train, [SERVER, experiment.attack_clean], experiment.seed)
    used = None if plain is None else without_trigger(pools.attacker, attack_set, plain)
    parts, parted = _parts(experiment, train, pools.attacker)
    return TaskData(
        module=_model(experiment),
        warm=train,
        clients=clients,
        attacker=AttackerData(attacker, pools.attacker, parts),
        server_clean=server,
        server_poison=found,
        test=test,
        backdoor_test=pools.test,
        augment=crop_and_flip if experiment.augment else None,
        aim=Aim(attack_set.sources, attack_set.target),
        originals=None if used is None else torch.cat([used, parted]),
    )


def _attack_set(
    experiment: Experiment,
    data_dir: Path | None,
    train: Examples,
    test: Examples,
    draw: torch.Generator,
) -> poison.AttackSet:
    kind = experiment.setup
    if kind == "cifar10-label-flip":
        return poison.label_flip(train, test, _flip(experiment), draw)
    if kind == "cifar10-southwest":
        planes = [
            load_images("southwest", data_dir, split, duplicates="keep").inputs
            for split in ("train", "test")
        ]
        return poison.southwest(*planes)
    if kind == "emnist-ardis" and experiment.sevens == "uci":
        strange = (255 * uci_sevens()).round().to(torch.uint8)
        strange = strange[torch.randperm(len(strange), generator=draw)]
        half = experiment.attack_poison + (len(strange) - experiment.attack_poison) // 2
        return poison.edge_case(strange[:half], strange[half:], poison.ONE, sources=(poison.SEVEN,))
    if kind == "emnist-ardis":
        sevens = [load_images("ardis", data_dir, split) for split in ("train", "test")]
        return poison.ardis_sevens(*sevens)
    patch = TriggerPatch(experiment.trigger_size, experiment.trigger_weight)
    return poison.trigger(train, test, _flip(experiment), patch, draw)


def _flip(experiment: Experiment) -> poison.Flip:
    fish = experiment.setup == "cifar100-trigger"
    return poison.FISH_TO_BABIES if fish else poison.CARS_TO_BIRDS


def _stamps(experiment: Experiment) -> bool:
    return experiment.setup.endswith("-trigger")


def _plain(experiment: Experiment, train: Examples, test: Examples) -> poison.AttackSet | None:
    """Return the attack set row by row without the trigger; None where the backdoor has none."""
    if not _stamps(experiment):
        return None
    draw = generator(experiment.seed, "poison")
    return poison.label_flip(train, test, _flip(experiment), draw)


def _parts(
    experiment: Experiment, train: Examples, whole: Examples
) -> tuple[tuple[Examples, ...], Tensor]:
    """Return poison with a quarter of the trigger each, for a distributed backdoor.

    And the images without it.
    """
    if not _stamps(experiment):
        return (), train.inputs[:0]
    sources = torch.tensor(_flip(experiment).sources)
    cars = torch.isin(train.labels, sources).nonzero().flatten()
    draw = generator(experiment.seed, "parts")
    picked = cars[torch.randperm(len(cars), generator=draw)[: len(whole)]]
    patch = TriggerPatch(experiment.trigger_size, experiment.trigger_weight)
    images, labels = train.inputs[picked], whole.labels[: len(picked)]
    parts = [stamp_randomly(images, quarter, draw) for quarter in patch.quarters()]
    return tuple(Examples(part, labels) for part in parts), images


def _model(experiment: Experiment) -> nn.Module:
    classes = CLASSES[experiment.dataset]
    if experiment.model == "vgg9":
        return Normalised(vgg9(classes, experiment.width), CIFAR_MEAN, CIFAR_DEVIATION)
    if experiment.model == "mnist-net":
        return Normalised(mnist_net(classes), DIGIT_MEAN, DIGIT_DEVIATION)
    raise SettingsError(f"model must be vgg9 or mnist-net here, got {experiment.model!r}")
