"""Oracle: an attacker that calls the defense and sends the largest step that it lets through."""

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import ClassVar, Literal

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import AttackerData, Sees, Threat
from datadefense.attacks.collusion import Params, Plot, View
from datadefense.attacks.poisoned_training import OwnTraining
from datadefense.attacks.step_search import best_step, largest_step
from datadefense.attacks.trial import Trial, guessed_trial, true_trial
from datadefense.core.settings import check_choice, check_float, setting
from datadefense.kernels.sums import dots, norms, weighted_sum

Knowledge = Literal["nothing", "rule", "everything"]
LEVELS: tuple[Knowledge, ...] = ("nothing", "rule", "everything")
FEWEST = 2
"""Stand-ins of a round at the least: the mean of one is as long as it is, which leaves no room."""


@dataclass(frozen=True, slots=True)
class Oracle(OwnTraining):
    r"""Call the defense, and send the largest step towards the backdoor that gets weight.

    Find the largest s for which the rule lets :math:`\mu + s\,b` through; send the best one.

    :math:`b = \bar u - \mu`: from the honest mean to the mean of what the attackers' own poisoned
    trainings gave. All attackers of a round send the same. They hold the same poison, so the mean
    of their trainings is a better backdoor than each of them, and equal updates vouch for each
    other where a rule looks for close neighbours (Krum).

    With n clients, and weights C that the rule gives when all attackers send that,

    .. math:: s^* = \max \Bigl\{ s \le \mathrm{longest} : \frac{1}{a} \sum_{j\ \mathrm{attacks}}
        C_j(s) \ge \frac{\mathrm{least\_weight}}{n} \Bigr\}

    is the round's *evasion budget*. What is sent is the s in :math:`[0, s^*]` that survives and
    after which the released model has the least loss on what the attackers hold, clean and
    poisoned: by averages :math:`s^*` has no bound, and a longer step than the one that replaces the
    model only breaks it. For a rule without weights that best s is the budget. `step_search` says
    how both are found. Where no s > 0 will do, they are 0, and the attackers send :math:`\mu`.

    Knowledge:

    - ``nothing`` of the rule: s is the largest for which what is sent is no longer than the
      attackers' own honest trainings are on average; :math:`\mu` is the mean of these.
    - ``rule``: it is called on their own honest trainings and on a server made of a guess, with the
      state that it has before the first round, in every round anew: nothing is carried over.
    - ``everything``: on the true honest updates, with the true state and the true server. No real
      attacker has that: it is the worst case of a step in this direction, as far as it is found.

    Reference: the full-information adversary of Byzantine learning, who adapts to the rule (Fang et
    al., *Local Model Poisoning Attacks to Byzantine-Robust Federated Learning*, USENIX Security
    2020; Shejwalkar and Houmansadr, *Manipulating the Byzantine*, NDSS 2021, whose search for the
    largest scale this follows), with a backdoor as the direction and any rule that can be called.
    """

    knowledge: Knowledge = setting(
        "everything", "what it knows of the defense: nothing, rule or everything"
    )
    least_weight: float = setting(
        0.5, "least mean weight that attackers accept, in fair shares 1/n"
    )
    longest_step: float = setting(30.0, "most that the backdoor's direction is multiplied by")

    name: ClassVar[str] = "oracle"
    threat: ClassVar[Threat] = Threat(
        "the defense; by default its state, its data and the honest updates too", trains_longer=True
    )

    def __post_init__(self) -> None:
        OwnTraining.__post_init__(self)
        check_choice("knowledge", self.knowledge, LEVELS)
        check_float("least_weight", self.least_weight, above=0)
        check_float("longest_step", self.longest_step, above=0)

    def holdings(self, data: AttackerData, usual: int) -> AttackerData:
        """Keep a guess of what the server holds, where one is needed."""
        return data.with_guess() if self.knowledge == "rule" else data

    def sees(self) -> Sees:
        """Return what the level of knowledge stands for."""
        return {
            "nothing": Sees.NOTHING,
            "rule": Sees.RULE,
            "everything": Sees.HONEST_UPDATES | Sees.RULE | Sees.SERVER,
        }[self.knowledge]

    def honest_trainings(self, others: int) -> int:
        """Return as many as there are others, but two at the least; none if these can be seen."""
        return 0 if self.knowledge == "everything" else max(FEWEST, others)

    def agree(self, view: View) -> Plot:
        """Search for the step, and send it."""
        sees_all = self.knowledge == "everything"
        honest = view.round.updates[~view.attacks] if sees_all else view.stand_ins
        trained = view.round.updates[view.attacks]
        usable = trained[trained.isfinite().all(1)]
        middle = mean(honest)
        direction = mean(usable) - middle if len(usable) else torch.zeros_like(middle)
        budget = step = 0.0
        if self.knowledge == "nothing":
            length = float(norms(honest).mean())
            budget = step = min(self.longest_step, step_to_length(middle, direction, length))
        elif bool(direction.any()):
            trial = true_trial(view) if sees_all else guessed_trial(view)
            if trial is not None:
                forecast = partial(_look_ahead, trial, view.own_loss, middle, direction)
                budget, step = self._search(cache(forecast), trial.round.num_clients)
        sent = (middle + step * direction).expand(len(trained), -1)
        return Plot(sent, {"evasion_budget": budget, "step": step})

    def _search(self, forecast: Callable[[float], "Forecast"], clients: int) -> tuple[float, float]:
        """Return the evasion budget, and the best step within it."""
        fair = self.least_weight / clients

        def survives(step: float) -> bool:
            weight = forecast(step).weight
            return weight is not None and weight >= fair

        def loss(step: float) -> float:
            return forecast(step).loss if step == 0 or survives(step) else math.inf

        if forecast(0.0).weight is None:
            step = best_step(lambda step: forecast(step).loss, self.longest_step)
            return step, step
        budget = largest_step(survives, self.longest_step)
        return budget, best_step(loss, budget) if budget else 0.0


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the rule would make of a step.

    Args:
        weight: the attackers' mean weight; None: the rule has no weights.
        loss: of the released model on what the attackers hold.
    """

    weight: float | None
    loss: float


def _look_ahead(
    trial: Trial,
    own_loss: Callable[[Params], float],
    middle: Params,
    direction: Params,
    step: float,
) -> Forecast:
    """Return the forecast of a step; where the rule has no answer, the worst one."""
    result = trial.answer(middle + step * direction)
    if result is None:
        return Forecast(-math.inf, math.inf)
    weights = result.weights
    weight = None if weights is None else float(weights[trial.attacks].to(torch.float64).mean())
    return Forecast(weight, own_loss(result.params))


def mean(rows: Float[Tensor, "rows dim"]) -> Params:
    """Return the mean of the rows; that of none is no change."""
    if not len(rows):
        return rows.new_zeros(rows.shape[1])
    return weighted_sum(rows.new_full((len(rows),), 1 / len(rows)), rows)


def step_to_length(middle: Params, direction: Params, length: float) -> float:
    r"""Return the largest s >= 0 with :math:`\lVert \mu + s b \rVert \le \ell`; 0 if none is.

    .. math:: s = \frac{-\mu b + \sqrt{(\mu b)^2 - b^2 (\mu^2 - \ell^2)}}{b^2}
    """
    (square,), (cross,) = dots(direction[None], direction), dots(middle[None], direction)
    below = float(norms(middle[None])[0]) ** 2 - length**2
    inside = float(cross) ** 2 - float(square) * below
    if not (float(square) > 0 and inside >= 0):
        return 0.0
    return max(0.0, (math.sqrt(inside) - float(cross)) / float(square))
