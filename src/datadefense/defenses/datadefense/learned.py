"""DataDefense with a learned detector, one-sided penalties and a learned theta within bounds."""

from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar, Literal

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.core.defense import Defense, Promise
from datadefense.core.defense_set import DefenseSet
from datadefense.core.detector import DetectorRecord
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
from datadefense.defenses.datadefense.detector_fit import Steps, fit
from datadefense.defenses.datadefense.importance import (
    L_theta,
    gradient_in_theta,
    relu_importance,
)
from datadefense.defenses.datadefense.losses import PerExample, l_c, l_p
from datadefense.defenses.datadefense.model_scores import (
    Kept,
    keep,
    scores_from_logits,
    scores_of,
)
from datadefense.defenses.datadefense.penalties import (
    NAMES,
    FreeDistance,
    Measured,
    penalties,
    without_rises,
)
from datadefense.defenses.datadefense.ranking import MarkedShare, Ranking, rank
from datadefense.defenses.datadefense.theta_box import ThetaBox
from datadefense.defenses.datadefense.usual_distance import remembered
from datadefense.defenses.datadefense.worst_faults import worst_faults
from datadefense.kernels.sums import add_weighted, dots, norms

STREAM = "datadefense"
"""Name of its random stream: the default's, which this form was when results were stored."""
RANGES = (
    *((f"{name}_low", f"{name}_high") for name in NAMES),
    ("free_distance_least", "free_distance_most"),
)
"""Settings that are the least and the greatest value of something."""
NOT_NEGATIVE = (
    *("excuse_clean", "excuse_poison", "most_rise", "free_distance_round"),
    *("lam", "consistency", "psi_rate", "start_rate"),
)
RESTARTED = "the detector ranked known clean examples above the others"
TRUSTS_NOBODY = "trusts no client: kept the model"


@dataclass(frozen=True, slots=True, eq=False)
class LearnedState:
    """What is remembered: theta, psi, median distances, and the first margin of each example.

    ``distances`` are the median distances of the last rounds, without clients that have another
    penalty; their median is the usual distance. Adam starts anew in every round, so no optimiser
    state is kept. ``kept`` only saves work: the losses and margins of the last released model.
    """

    theta: Float64[Tensor, " 3"]
    psi: Psi
    distances: tuple[float, ...]
    first_margins: dict[str, float] = field(default_factory=dict)
    kept: Kept = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataDefenseLearned(Defense[LearnedState]):
    r"""Learn the detector psi and the weights theta of the penalties over the rounds.

    It was the default until attackers were tried that change the model slowly over many rounds;
    `DataDefense` stops those. A round has five steps. (1) The detector gamma ranks D_d; the top
    ``beta`` of it, without known clean examples, is D_dp, the rest D_dc. (2) Every client's model
    is measured on both parts; f_j are its `penalties`. (3) With theta >= 0

    .. math:: C_j \propto \mathrm{ReLU}(1 - \theta \cdot f_j), \qquad
        \bar\phi^t = \bar\phi^{t-1} + \sum_j C_j (\phi_j - \bar\phi^{t-1})

    (Eq. 2 and 3; where no client has weight the model stays). (4) theta takes one step down
    :math:`L_\theta` (Eq. 6) at the new model, within its bounds. (5) psi takes ``psi_steps`` down
    :math:`V + L_{pred} + l_{consist}` (Eq. 9 to 11, as means). The margin of an example in V is a
    mix of its first and its present margin, so that a model that is poisoned later does not
    mislead the detector. A detector that ranks known clean examples above the others has collapsed
    and is started anew.

    Weights do not depend on the claimed numbers of examples. The state carries over when examples
    are added or marks change. Differs from the paper in the form of the features, the bounds of
    theta, the margins, and in keeping Eq. 11 in the rounds: see ``docs/deviations.md``. The paper's
    own forms are `DataDefensePaper`, `DataDefenseAppendix` and `DataDefenseReleased`.

    Reference: Purohit et al., *A Data-Driven Defense against Edge-case Model Poisoning Attacks on
    Federated Learning*, ECAI 2024.
    """

    beta: float | Literal["auto"] = setting(
        0.2, "share of the defense set to mark; auto: estimated, at least least_marked"
    )
    theta_rate: float = setting(0.1, "step of theta as a share of its range; 0: theta stays")
    psi_steps: int = setting(
        3, "steps of psi in a round; 0: psi stays after its start, unless it collapses"
    )
    halt_after: int | None = setting(None, "round after which theta and psi stay; none: never")
    worse_on_clean_low: float = setting(0.1, "least theta of getting worse on clean examples")
    worse_on_clean_high: float = setting(0.3, "greatest theta of getting worse on clean examples")
    learned_poison_low: float = setting(1.5, "least theta of learning the poison")
    learned_poison_high: float = setting(2.0, "greatest theta of learning the poison")
    moved_far_low: float = setting(0.1, "least theta of moving further than the others")
    moved_far_high: float = setting(0.3, "greatest theta of moving further than the others")
    """Anywhere within these bounds each penalty alone can take all weight from a client, and
    honest clients keep most of theirs. Theta starts at a random point within them."""
    excuse_clean: float = setting(2.0, "most of worse_on_clean excused if the round shares it")
    excuse_poison: float = setting(0.25, "most of learned_poison excused if the round shares it")
    """Honest clients may all get worse at once; attackers in the majority must not be excused."""
    most_rise: float = setting(0.5, "rise of a poisoned example's loss that counts, of the mean")
    """Otherwise a rise on some poisoned examples hides that the others were learned."""
    loss_floor: float = setting(0.1, "nats added to a loss before something is divided by it")
    """So that noise on a loss near 0 is not a large penalty."""
    free_distance_round: float = setting(2.0, "free distance: multiple of the lower quartile")
    free_distance_least: float = setting(1.5, "least free distance: multiple of the usual one")
    free_distance_most: float = setting(3.0, "greatest free distance: multiple of the usual one")
    distance_memory: int = setting(9, "rounds whose median distance is remembered")
    """As in the default: neither clients that hardly move nor a round of attackers sets the
    scale."""
    first_share: float = setting(0.5, "share of an example's first margin in what psi learns from")
    """The present model's margins alone would follow a model that is being poisoned."""
    margin_clip: float = setting(5.0, "nats up to which a margin counts")
    """So that a few examples with large margins do not dominate the detector's loss."""
    lam: float = setting(1.0, "weight lambda of L_pred (Eq. 10), a mean")
    consistency: float = setting(1.0, "weight of Eq. 11 in the rounds; 0: only at the start")
    """Known clean examples keep the detector from collapsing."""
    psi_rate: float = setting(1e-4, "step size of psi in the rounds")
    """Adam starts anew each round, and its first steps have full length however small the
    gradient is: larger ones disturb a good ranking."""
    start_steps: int = setting(100, "steps of psi at the start")
    start_rate: float = setting(1e-3, "step size of psi at the start")
    """Enough for the detector to rank the poison first on the digits and on CIFAR-10."""
    hidden: int = setting(256, "width of the detector's hidden layers")
    """As in the authors' code."""
    least_marked: float = setting(0.2, "least share to mark where beta is auto")
    """An estimate that is too low would leave poison in D_dc, which weakens both losses."""
    fewest_known: int = setting(5, "known clean examples below which beta is not estimated")
    """A distribution of fewer says nothing."""

    name: ClassVar[str] = "datadefense-learned"
    revision: ClassVar[int] = 3
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
        for name in ("theta_rate", "first_share", "least_marked"):
            check_float(name, getattr(self, name), minimum=0, maximum=1)
        for low, high in RANGES:
            check_float(low, getattr(self, low), minimum=0)
            check_float(high, getattr(self, high), minimum=getattr(self, low))
        for name in NOT_NEGATIVE:
            check_float(name, getattr(self, name), minimum=0)
        for name in ("loss_floor", "margin_clip"):
            check_float(name, getattr(self, name), above=0)
        for name in ("psi_steps", "start_steps"):
            check_int(name, getattr(self, name), 0)
        for name in ("distance_memory", "hidden", "fewest_known"):
            check_int(name, getattr(self, name), 1)
        if self.halt_after is not None:
            check_int("halt_after", self.halt_after, 0)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> LearnedState:
        """Draw theta^0 within its bounds; fit psi^0 to D_clean and the model's own margins."""
        owned = defense_set_of(server, self.name)
        with torch.no_grad():
            z = server.logits(params, owned.examples.inputs)
        scores = scores_from_logits(z, owned.examples)
        psi = self._start(server, owned, scores.margins, z.shape[1], 0)
        theta = self._box().draw(server.generator(STREAM, "theta"))
        first = dict(zip(owned.ids, scores.margins.tolist(), strict=True))
        return LearnedState(theta, psi, (), first, keep(params, owned.examples, scores))

    def aggregate(
        self, state: LearnedState, round: Round, server: Server
    ) -> Aggregate[LearnedState]:
        """Rank D_d, compute penalties and weights, make the model; then learn theta and psi."""
        owned = defense_set_of(server, self.name)
        y = owned.examples.labels
        released = scores_of(server, round.global_params, owned.examples, state.kept)
        wanted = MarkedShare(self.beta, self.least_marked, self.fewest_known)
        ranking = rank(state.psi, owned, state.first_margins, released.margins, wanted)
        marked = ranking.marked
        losses = client_losses(server, round, owned)
        measured = Measured(
            clean=mean_loss(losses, ~marked),
            poison=without_rises(
                losses[:, marked],
                released.losses[marked],
                most_rise=self.most_rise,
                floor=self.loss_floor,
            ),
            distance=norms(round.updates),
            released_clean=float(mean_loss(released.losses[None], ~marked)),
            released_poison=float(mean_loss(released.losses[None], marked)),
            usual_distance=median(state.distances) if state.distances else torch.inf,
        )
        f = self._penalties(measured)
        r = 1 - f @ state.theta
        C = relu_importance(r)
        params = add_weighted(round.global_params, C, round.updates)
        learns = self.halt_after is None or round.index <= self.halt_after
        phi = params.detach().clone().requires_grad_(learns and self.theta_rate > 0)
        z = server.logits(phi, owned.examples.inputs)
        scores = scores_from_logits(z, owned.examples)
        theta, psi = state.theta, state.psi
        if phi.requires_grad:
            (slope,) = torch.autograd.grad(L_theta(l_c(z, y), l_p(z, y), marked), phi)
            pulls = dots(round.updates, slope)
            gradient = gradient_in_theta(r, C, -f, pulls, r > 0)
            theta = self._box().step(theta, gradient, self.theta_rate)
        restarts = learns and ranking.has_collapsed(owned.known_clean)
        if learns:
            margins = self.first_share * ranking.early
            margins += (1 - self.first_share) * scores.margins
            if restarts:
                psi = self._start(server, owned, margins, z.shape[1], round.index)
            else:
                steps = Steps(
                    self.psi_steps, self.psi_rate, self.lam, self.consistency, self.margin_clip
                )
                psi = fit(psi, owned, margins, steps)
        blameless = f[:, :2] @ state.theta[:2] < 1
        return Aggregate(
            params,
            LearnedState(
                theta,
                psi,
                remembered(state.distances, measured.distance[blameless], self.distance_memory),
                ranking.first_margins,
                keep(params, owned.examples, scores),
            ),
            C.to(round.updates.dtype),
            {
                "clean_loss": measured.clean,
                "poison_loss": mean_loss(losses, marked),
                "distance": measured.distance,
                **{name: f[:, place] for place, name in enumerate(NAMES)},
            },
            {
                **_report(ranking, measured),
                **({"restarted": RESTARTED} if restarts else {}),
                **({} if bool((C > 0).any()) else {"fallback": f"{self.name} {TRUSTS_NOBODY}"}),
            },
            worst_faults(NAMES, f, state.theta, C),
            DetectorRecord.of(owned, ranking.scores, marked),
            dict(zip(NAMES, state.theta.tolist(), strict=True)),
        )

    def _start(
        self, server: Server, owned: DefenseSet, margins: PerExample, classes: int, index: int
    ) -> Psi:
        """Return psi^0: new random weights, fitted with Eq. 11 at weight 1."""
        draw = server.generator(STREAM, "psi", index)
        psi = draw_psi(owned.features.shape[1], classes, draw, self.hidden)
        steps = Steps(self.start_steps, self.start_rate, self.lam, 1.0, self.margin_clip)
        return fit(psi, owned, margins, steps)

    def _penalties(self, measured: Measured) -> Float64[Tensor, "clients 3"]:
        return penalties(
            measured,
            floor=self.loss_floor,
            excuse_clean=self.excuse_clean,
            excuse_poison=self.excuse_poison,
            free=FreeDistance(
                self.free_distance_round, self.free_distance_least, self.free_distance_most
            ),
        )

    def _box(self) -> ThetaBox:
        return ThetaBox.of(
            (self.worse_on_clean_low, self.worse_on_clean_high),
            (self.learned_poison_low, self.learned_poison_high),
            (self.moved_far_low, self.moved_far_high),
        )


def _report(ranking: Ranking, measured: Measured) -> dict[str, Any]:
    """Return facts of the round: losses of the released model, and the estimated share."""
    report: dict[str, Any] = {
        "released_clean_loss": measured.released_clean,
        "released_poison_loss": measured.released_poison,
    }
    if ranking.share is not None:
        report["poison_share"] = ranking.share.share
        report["poison_share_error"] = ranking.share.error
    return report
