"""The material of digits-edge: MNIST digits, strange sevens called 1, a LeNet."""

import torch

from datadefense.attacks.base import AttackerData
from datadefense.core.rng import generator
from datadefense.core.settings import SettingsError
from datadefense.data.digits import EDGE_CLASS, TARGET_CLASS, load_digits_edge
from datadefense.runs.config import Experiment
from datadefense.tasks.base import Aim, TaskData, deal
from datadefense.tasks.models.lenet import lenet

WARM, SERVER = 800, 400
"""Of the 4,000 digits to train on: for the warm start, and for the server."""


def digits_edge(experiment: Experiment) -> TaskData:
    """Deal digits and strange sevens; the warm start has digits that are nobody's."""
    digits = load_digits_edge(experiment.seed)
    warm, server, attacker, clients = deal(
        digits.train, [WARM, SERVER, experiment.attack_clean], experiment.seed
    )
    strange = torch.randperm(len(digits.edge_case), generator=generator(experiment.seed, "poison"))
    poison = experiment.attack_poison
    if poison > len(strange) - 100:
        raise SettingsError(f"attack_poison must be <= {len(strange) - 100}, got {poison}")
    half = poison + (len(strange) - poison) // 2
    return TaskData(
        module=lenet(),
        warm=warm,
        clients=clients,
        attacker=AttackerData(attacker, digits.edge_case.take(strange[:poison])),
        server_clean=server,
        server_poison=digits.edge_case.take(strange[poison:half][: experiment.server_poison]),
        test=digits.test,
        backdoor_test=digits.edge_case.take(strange[half:]),
        aim=Aim((EDGE_CLASS,), TARGET_CLASS),
    )
