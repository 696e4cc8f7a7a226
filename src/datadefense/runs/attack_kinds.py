"""Attacks by name: what each is made of, as an experiment chooses it."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from datadefense.attacks.absent import SendsNothing
from datadefense.attacks.adaptive import KnowsTheDefense
from datadefense.attacks.base import Plain, Twist
from datadefense.attacks.constrain import ConstrainAndScale
from datadefense.attacks.data_poisoning import OrdinaryPoisoner
from datadefense.attacks.dba import Distributed
from datadefense.attacks.drip import Drip
from datadefense.attacks.idle import HardlyMoves
from datadefense.attacks.lie import LittleIsEnough
from datadefense.attacks.neurotoxin import Neurotoxin
from datadefense.attacks.oracle import CallsTheDefense

if TYPE_CHECKING:  # whose fields the settings of an attack are taken from
    from datadefense.runs.config import Experiment


@dataclass(frozen=True, slots=True)
class AttackKind:
    """What the name of an attack stands for: a ball or not, scaling or not, and a twist.

    ``as_honest``: it trains with the honest clients' epochs and step size, not with its own.
    """

    about: str
    ball: bool = False
    replacement: bool = False
    twist: Callable[["Experiment"], Twist] = lambda _: Plain()
    as_honest: bool = False


ATTACKS: Mapping[str, AttackKind] = {
    "none": AttackKind("nobody attacks"),
    "data-poisoning": AttackKind(
        "an ordinary client with a share of poisoned examples; trains as honest clients do",
        twist=lambda one: OrdinaryPoisoner(share=one.poison_share),
        as_honest=True,
    ),
    "black-box": AttackKind("train on clean and poisoned data"),
    "pgd": AttackKind("the same within a ball around the global model", ball=True),
    "pgd-replacement": AttackKind("the same, scaled to replace the model", True, True),
    "neurotoxin": AttackKind(
        "stay off the coordinates that honest clients use", twist=lambda _: Neurotoxin()
    ),
    "dba": AttackKind(
        "each attacker stamps a part of the trigger; scaled", False, True, lambda _: Distributed()
    ),
    "lie": AttackKind(
        "hide within the spread of honest updates",
        twist=lambda one: LittleIsEnough(clients=one.clients_per_round),
    ),
    "constrain-and-scale": AttackKind(
        "a loss that also wants to stay close; scaled", False, True, lambda _: ConstrainAndScale()
    ),
    "adaptive": AttackKind(
        "knows the defense: as much as it lets through, by a guess of its data",
        twist=lambda one: KnowsTheDefense(tolerance=one.tolerance, reach=one.reach),
    ),
    "drip": AttackKind(
        "adaptive in every round; with drip_slack < 1 it minds what the defense holds too",
        twist=lambda one: Drip(tolerance=one.tolerance, reach=one.reach, slack=one.drip_slack),
    ),
    "oracle": AttackKind(
        "calls the defense, and sends the largest step towards its backdoor that gets weight",
        twist=lambda one: CallsTheDefense(one.knowledge, one.least_weight, one.longest_step),
    ),
    "idle": AttackKind(
        "no backdoor: hardly move, so that honest clients seem to go too far",
        twist=lambda _: HardlyMoves(),
    ),
    "absent": AttackKind(
        "send nothing that counts: what a perfect defense would leave",
        twist=lambda _: SendsNothing(),
    ),
}
"""The attacks by name."""
