"""DataDefense with a learned detector and learned theta: regularised, one-sided, in a box."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.core.defense import Defense, Promise
from datadefense.core.defense_set import DefenseSet
from datadefense.core.needs import Need
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import SettingsError, check_float, check_int, setting
from datadefense.defenses.datadefense.client_losses import (
    NEEDS,
    client_losses,
    defense_set_of,
    mean_loss,
)
from datadefense.defenses.datadefense.detector import Psi, draw_psi
from datadefense.defenses.datadefense.detector_fit import ROUND_RATE, START, Steps, fit
from datadefense.defenses.datadefense.faults import (
    EXCUSES,
    MOST_RISE,
    NAMES,
    Measured,
    faults,
    without_rises,
)
from datadefense.defenses.datadefense.importance import (
    L_theta,
    gradient_in_theta,
    relu_importance,
)
from datadefense.defenses.datadefense.losses import PerExample, l_c, l_p
from datadefense.defenses.datadefense.model_scores import Kept, answers, answers_of, keep
from datadefense.defenses.datadefense.ranking import Opinion, opinion_of
from datadefense.defenses.datadefense.usual_distance import remembered
from datadefense.kernels.sums import add_weighted, dots, norms

Corner = tuple[float, float, float]
STREAM = "datadefense"
"""Name of its random numbers: that of the default, which it was when results were stored."""
RESTARTED = "the detector ranked known clean examples above the others"
TRUSTS_NOBODY = "trusts no client: kept the model"


@dataclass(frozen=True, slots=True, eq=False)
class LearnedState:
    """What is remembered: theta, psi, distances, and the first margin of each example.

    ``distances`` are those of the middle client in the last rounds, clients with other faults
    aside; their median is the usual distance.

    Adam starts afresh in every round, so there is no optimiser to remember. ``kept`` saves work
    and changes nothing: what the model that was made last gives on the defense set.
    """

    theta: Float64[Tensor, " 3"]
    psi: Psi
    distances: tuple[float, ...]
    first_margins: dict[str, float] = field(default_factory=dict)
    kept: Kept = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataDefenseLearned(Defense[LearnedState]):
    r"""Learn the detector psi and the importance theta as the paper does, held by what is known.

    The default until the patient attacker was met (`DataDefense` is what holds against it). In a
    round: (1) the detector gamma ranks D_d, and the top ``beta`` of it, known clean examples
    aside, is D_dp, the rest D_dc; (2) every client's model is measured on both parts and its
    `faults` against the released model are taken; (3) with theta >= 0

    .. math:: C_j \propto \mathrm{ReLU}(1 - \theta \cdot f_j), \qquad
        \bar\phi^t = \bar\phi^{t-1} + \sum_j C_j (\phi_j - \bar\phi^{t-1})

    (Eq. 2 and 3; nobody without a weight: the model stays); (4) theta takes a step down
    :math:`L_\theta` (Eq. 6) at the new model, within a box; (5) psi takes some down
    :math:`V + L_{pred} + l_{consist}` (Eq. 9 to 11, as means), where the margin of an example is
    the mean of its first and its present one: a model that is poisoned later cannot talk the
    detector out of what it knew. A detector that ranks known clean examples above the others has
    collapsed and is started anew.

    Weights do not depend on the claimed numbers of examples. The state carries over when examples
    are added or marks change. Differs from the paper in the form of the features, the box, the
    margins and in keeping Eq. 11 in the rounds: see ``docs/deviations.md``. The paper's own forms
    are `DataDefensePaper`, `DataDefenseAppendix` and `DataDefenseReleased`.

    Reference: Purohit et al., *A Data-Driven Defense against Edge-case Model Poisoning Attacks on
    Federated Learning*, ECAI 2024.
    """

    beta: float | Literal["auto"] = setting(
        0.2, "share of the defense set to mark; auto: estimated, at least 0.2"
    )
    theta_rate: float = setting(0.1, "step of theta as a share of its box; 0: theta stays")
    psi_steps: int = setting(
        3, "steps of psi in a round; 0: psi stays after its start, unless it collapses"
    )
    halt_after: int | None = setting(None, "round after which theta and psi stay; none: never")

    name: ClassVar[str] = "datadefense-learned"
    box: ClassVar[tuple[Corner, Corner]] = ((0.1, 1.5, 0.1), (0.3, 2.0, 0.3))
    """Where theta is learned: wherever it is in there, each fault alone can cost all weight."""
    excuses: ClassVar[tuple[float, float]] = EXCUSES
    most_rise: ClassVar[float] = MOST_RISE
    first_share: ClassVar[float] = 0.5
    """Share of an example's first margin in the one that the detector learns from."""
    consistent: ClassVar[bool] = True
    """Whether Eq. 11 also holds in the rounds."""
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC
        | Promise.WEIGHTED
        | Promise.SUMS_TO_ONE
        | Promise.UNANIMOUS
        | Promise.BOUNDED
    )
    needs: ClassVar[Need] = NEEDS

    def __post_init__(self) -> None:
        if isinstance(self.beta, str):
            if self.beta != "auto":
                raise SettingsError(f"beta must be a number or auto, got {self.beta!r}")
        else:
            check_float("beta", self.beta, minimum=0, maximum=1)
        check_float("theta_rate", self.theta_rate, minimum=0, maximum=1)
        check_int("psi_steps", self.psi_steps, 0)
        if self.halt_after is not None:
            check_int("halt_after", self.halt_after, 0)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> LearnedState:
        """Draw theta^0 from its box; start psi^0 from D_clean and the model's own margins."""
        owned = defense_set_of(server, self.name)
        with torch.no_grad():
            z = server.logits(params, owned.examples.inputs)
        given = answers(z, owned.examples)
        psi = self._start(server, owned, given.margins, z.shape[1], 0)
        low, high = self._corners()
        draw = server.generator(STREAM, "theta")
        theta = low + (high - low) * torch.rand(3, generator=draw, dtype=torch.float64)
        first = dict(zip(owned.ids, given.margins.tolist(), strict=True))
        return LearnedState(theta, psi, (), first, keep(params, owned.examples, given))

    def aggregate(
        self, state: LearnedState, round: Round, server: Server
    ) -> Aggregate[LearnedState]:
        """Split, measure, weigh, release; then learn."""
        owned = defense_set_of(server, self.name)
        y = owned.examples.labels
        released = answers_of(server, round.global_params, owned.examples, state.kept)
        opinion = opinion_of(state.psi, owned, state.first_margins, released.margins, self.beta)
        marked = opinion.marked
        losses = client_losses(server, round, owned)
        measured = Measured(
            clean=mean_loss(losses, ~marked),
            poison=without_rises(losses[:, marked], released.losses[marked], self.most_rise),
            distance=norms(round.updates),
            released_clean=float(mean_loss(released.losses[None], ~marked)),
            released_poison=float(mean_loss(released.losses[None], marked)),
            usual_distance=median(state.distances) if state.distances else torch.inf,
        )
        f = faults(measured, self.excuses)
        r = 1 - f @ state.theta
        C = relu_importance(r)
        params = add_weighted(round.global_params, C, round.updates)
        learns = self.halt_after is None or round.index <= self.halt_after
        phi = params.detach().clone().requires_grad_(learns and self.theta_rate > 0)
        z = server.logits(phi, owned.examples.inputs)
        given = answers(z, owned.examples)
        theta, psi = state.theta, state.psi
        if phi.requires_grad:
            (slope,) = torch.autograd.grad(L_theta(l_c(z, y), l_p(z, y), marked), phi)
            pulls = dots(round.updates, slope)
            theta = self._step(theta, gradient_in_theta(r, C, -f, pulls, r > 0))
        restarts = learns and opinion.has_collapsed(owned.known_clean)
        if learns:
            margins = self.first_share * opinion.early
            margins += (1 - self.first_share) * given.margins
            if restarts:
                psi = self._start(server, owned, margins, z.shape[1], round.index)
            else:
                psi = fit(psi, owned, margins, Steps(self.psi_steps, ROUND_RATE, self.consistent))
        blameless = f[:, :2] @ state.theta[:2] < 1
        return Aggregate(
            params,
            LearnedState(
                theta,
                psi,
                remembered(state.distances, measured.distance[blameless]),
                opinion.first_margins,
                keep(params, owned.examples, given),
            ),
            C.to(round.updates.dtype),
            {
                "clean_loss": measured.clean,
                "poison_loss": mean_loss(losses, marked),
                "distance": measured.distance,
                **{name: f[:, place] for place, name in enumerate(NAMES)},
            },
            {
                **_report(opinion, measured, f, state.theta),
                **({"restarted": RESTARTED} if restarts else {}),
                **({} if bool((C > 0).any()) else {"fallback": f"{self.name} {TRUSTS_NOBODY}"}),
            },
        )

    def _start(
        self, server: Server, owned: DefenseSet, margins: PerExample, classes: int, index: int
    ) -> Psi:
        """Return psi^0: fresh weights, fitted."""
        draw = server.generator(STREAM, "psi", index)
        psi = draw_psi(owned.features.shape[1], classes, draw)
        return fit(psi, owned, margins, START)

    def _corners(self) -> tuple[Tensor, Tensor]:
        low, high = (torch.tensor(corner, dtype=torch.float64) for corner in self.box)
        return low, high

    def _step(self, theta: Tensor, gradient: Tensor) -> Tensor:
        """Return theta after one step of a fixed length, in units of its box, back into it."""
        low, high = self._corners()
        width = high - low
        scaled = gradient * width
        length = float(scaled.norm())
        if not 0 < length < torch.inf:
            return theta
        return torch.clamp(theta - self.theta_rate * width * scaled / length, low, high)


def _report(
    opinion: Opinion, measured: Measured, f: Float64[Tensor, "clients 3"], theta: Tensor
) -> dict[str, Any]:
    """Return why, as data: gamma of every example, who was marked, what each client did."""
    report: dict[str, Any] = {
        "theta": theta.tolist(),
        "gamma": [float(f"{score:.4g}") for score in opinion.scores.tolist()],
        "marked": opinion.marked.nonzero().flatten().tolist(),
        "reasons": _reasons(f, theta),
        "released_clean_loss": measured.released_clean,
        "released_poison_loss": measured.released_poison,
    }
    if opinion.share is not None:
        report["poison_share"] = opinion.share.share
        report["poison_share_error"] = opinion.share.error
    return report


def _reasons(f: Float64[Tensor, "clients 3"], theta: Tensor) -> list[str]:
    """Return each client's greatest fault, if any cost it weight."""
    costs = f * theta
    places = costs.argmax(1).tolist()
    return [
        f"{NAMES[place]} {float(f[row, place]):.3g}" if float(costs[row, place]) > 0 else ""
        for row, place in enumerate(places)
    ]
