"""DataDefense, the default: the released model never learns the surely poisoned examples."""

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.core.defense import Defense, Promise
from datadefense.core.defense_set import DefenseSet
from datadefense.core.detector import DetectorRecord
from datadefense.core.needs import Need
from datadefense.core.reasons import Reason
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, check_int, setting
from datadefense.defenses.datadefense.client_losses import NEEDS, defense_set_of
from datadefense.defenses.datadefense.first_margins import first_margins, names_of
from datadefense.defenses.datadefense.hold import Held, Limits, hold
from datadefense.defenses.datadefense.importance import PerClient, relu_importance
from datadefense.defenses.datadefense.losses import PerExample
from datadefense.defenses.datadefense.model_scores import scores_of
from datadefense.defenses.datadefense.penalties import FreeDistance, moved_far
from datadefense.defenses.datadefense.sure_poison import (
    Criterion,
    SurePoison,
    sure_poison,
    suspicion,
)
from datadefense.defenses.datadefense.usual_distance import remembered
from datadefense.defenses.datadefense.worst_faults import worst_faults
from datadefense.defenses.krum import krum_scores, not_chosen
from datadefense.kernels.distances import squared_distances
from datadefense.kernels.sums import add_weighted, norms

PENALTIES = ("known_poison", "moved_far")
"""The penalties of a client, in the order of the columns."""
NOTHING_SURE = (
    "no example of the defense set is surely poisoned (about ten poisoned ones of one label are "
    "needed): the updates with the worst Krum scores are left out instead"
)


@dataclass(frozen=True, slots=True, eq=False)
class DataDefenseState:
    """What is remembered: median distances, and the first margin of each example and label.

    ``first_margins`` also holds examples that have left the set (`first_margins.first_margins`).
    """

    distances: tuple[float, ...] = ()
    first_margins: dict[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataDefense(Defense[DataDefenseState]):
    r"""Reduce the weights of clients that know the poison, and limit what the model knows of it.

    A round has four steps. (1) Sure poison: the examples whose labels the *first* model found very
    unlikely, if many of them have one label (`sure_poison`). (2) Penalties: every client's model is
    run on the sure poison, and is penalised for what it knows of it beyond the limit of step 4 and
    for how far it moved (`penalties.moved_far`); a client whose loss on one of these examples is
    not finite, or huge, is left out. (3) Weights: only a client's worst penalty counts,

    .. math:: r_j = \mathrm{ReLU}\bigl(1 - \max_i \theta_i f_{ji}\bigr), \qquad
        C_j = \min\Bigl(1, \frac{\#\{r > 0\}}{s\,n}\Bigr) \frac{r_j}{\sum_k r_k}, \qquad
        \bar\phi^t = \bar\phi^{t-1} + \sum_j C_j (\phi_j - \bar\phi^{t-1})

    (Eq. 2 and 3 with fixed theta). The step is whole while the share s = ``full_step_share`` of the
    clients has weight, and shorter below that, so that a few clients do not decide a round.
    (4) Hold: with S the mean probability of the sure poison's labels, the model is released only if

    .. math:: S(\bar\phi^t) \le \max\bigl(S(\bar\phi^0) + \mathrm{slack},\ S(\bar\phi^{t-1})\bigr)

    Otherwise the server moves the model the shortest way back to the limit, shortens the step, or
    keeps the old model (`hold`). The limit depends on the first model, so an attacker cannot raise
    it slowly over many rounds; the second term only matters when the set has changed. Without sure
    poison there is nothing to limit, and the ``num_malicious`` updates with the worst Krum scores
    are left out instead. A round costs a forward pass of each client's model over the sure poison
    and a few of the average's; the rest of the set is run once, by the first model.

    Weights do not depend on the claimed numbers of examples. Differs from the paper in all but its
    data and its features: see ``docs/deviations.md``. With a learned detector and learned weights:
    `DataDefenseLearned`; as published: `DataDefensePaper`, `DataDefenseAppendix`,
    `DataDefenseReleased`.

    Reference: Purohit et al., *A Data-Driven Defense against Edge-case Model Poisoning Attacks on
    Federated Learning*, ECAI 2024.
    """

    slack: float = setting(
        0.01, "most that the model may know of the sure poison beyond the first model; 1: no limit"
    )
    known_poison: float = setting(
        5.0, "theta of knowing more of the sure poison than the model may; 0: no penalty"
    )
    """A client whose model knows a fifth more than the limit has no weight."""
    moved_far: float = setting(0.2, "theta of moving further than the others; 0: no penalty")
    low_share: float = setting(0.1, "share of the known clean examples that count as low too")
    chance: float = setting(3e-5, "probability of luck below which a label's low examples are sure")
    num_malicious: int = setting(1, "updates left out of a round where no poison is sure")
    fewest_known: int = setting(5, "known clean examples below which no poison is sure")
    """A quantile of fewer says nothing."""
    prior_examples: int = setting(10, "examples that low_share counts for beside a label's own")
    """So that a label with few known clean examples is not called hard, or easy, by luck."""
    pile_share: float = setting(0.5, "least low examples of a sure label, of the most of any label")
    """A hard class has a few low examples; a second backdoor has about as many as the first."""
    full_step_share: float = setting(0.5, "share of clients with weight for a step of full length")
    """While half of the clients have weight, an honest majority decides."""
    aim: float = setting(0.98, "what the hold corrects a model to, as a share of the limit")
    """Newton's steps come from above and would never quite arrive at the limit itself."""
    corrections: int = setting(5, "times that the hold corrects a model before it halves the step")
    """Each costs a gradient on the sure poison; where the average is near the limit one will do."""
    halvings: int = setting(5, "times that the hold halves the step before the old model stays")
    """Each try costs a forward pass, and 1/32 of a step is hardly progress."""
    free_distance_round: float = setting(2.0, "free distance: multiple of the lower quartile")
    """Honest clients' distances differ by about a factor of two."""
    free_distance_least: float = setting(1.5, "least free distance: multiple of the usual one")
    """So that clients who hardly move cannot make the others look far."""
    free_distance_most: float = setting(3.0, "greatest free distance: multiple of the usual one")
    """So that a round full of attackers cannot raise it."""
    distance_memory: int = setting(9, "rounds whose median distance is remembered")
    """Their median is the usual distance: four bad rounds of nine do not change it much."""
    remembered_margins: int = setting(
        100_000, "most first margins remembered of examples that have left the set"
    )
    """Limits memory and the size of checkpoints where the set changes every day."""

    name: ClassVar[str] = "datadefense"
    revision: ClassVar[int] = 7
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.WEIGHTED | Promise.UNANIMOUS | Promise.BOUNDED
    )
    needs: ClassVar[Need] = NEEDS

    def __post_init__(self) -> None:
        check_float("slack", self.slack, minimum=0, maximum=1)
        for name in (*PENALTIES, "free_distance_round", "free_distance_least"):
            check_float(name, getattr(self, name), minimum=0)
        check_float("free_distance_most", self.free_distance_most, minimum=self.free_distance_least)
        check_float("low_share", self.low_share, above=0, below=1)
        check_float("chance", self.chance, minimum=0, maximum=1)
        check_float("pile_share", self.pile_share, minimum=0, maximum=1)
        check_float("full_step_share", self.full_step_share, above=0, maximum=1)
        check_float("aim", self.aim, minimum=0, maximum=1)
        for name in ("fewest_known", "prior_examples", "distance_memory"):
            check_int(name, getattr(self, name), 1)
        for name in ("num_malicious", "corrections", "halvings", "remembered_margins"):
            check_int(name, getattr(self, name), 0)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> DataDefenseState:
        """Remember the first model's margin on each example."""
        owned = defense_set_of(server, self.name)
        return DataDefenseState((), self._first_margins({}, owned, server, params))

    def aggregate(
        self, state: DataDefenseState, round: Round, server: Server
    ) -> Aggregate[DataDefenseState]:
        """Find the sure poison, compute penalties and weights, and keep the limit."""
        owned = defense_set_of(server, self.name, least=0)
        remembered_first = self._first_margins(
            state.first_margins, owned, server, round.global_params
        )
        first = torch.tensor([remembered_first[name] for name in names_of(owned)])
        poison = self._sure_poison(first, owned)
        known_by, before = poison.known_by(server, round), poison.known(server, round.global_params)
        sound, before = known_by.isfinite(), before if math.isfinite(before) else 0.0
        limit = max(poison.reference + self.slack, before)
        known_by, distance = known_by.nan_to_num(0.0), norms(round.updates)
        f = self._penalties(known_by - limit, distance, state.distances)
        out = self._farthest(round) if not len(poison) else {}
        broken = (~sound).nonzero().flatten().tolist()
        out |= dict.fromkeys(broken, Reason("loss_not_finite"))
        C = self._weights(f, out)
        held = hold(
            lambda weights: add_weighted(round.global_params, weights, round.updates),
            lambda params: poison.known(server, params),
            lambda params: poison.slope(server, params),
            C,
            limits=Limits(limit, self.aim, self.corrections, self.halvings),
            old=Held(round.global_params.clone(), torch.zeros_like(C), 0.0, 0.0, before),
        )
        blameless = (f[:, 0] * self.known_poison < 1) & sound
        reasons = self._reasons(f, known_by, limit, held)
        return Aggregate(
            held.params,
            DataDefenseState(
                remembered(state.distances, distance[blameless], self.distance_memory),
                remembered_first,
            ),
            held.weights.to(round.updates.dtype),
            {"known_poison": known_by, "distance": distance, "moved_far": f[:, 1]},
            self._promise(held, poison, limit, nobody=not bool((C > 0).any())),
            [out.get(row, reason) for row, reason in enumerate(reasons)],
            DetectorRecord.of(owned, suspicion(first, owned.known_clean), poison.marked),
        )

    def _first_margins(
        self,
        known: Mapping[str, float],
        owned: DefenseSet,
        server: Server,
        params: Float[Tensor, " dim"],
    ) -> dict[str, float]:
        """Return the first margin of each example; the model is run only if there are new ones."""

        def margins() -> PerExample:
            return scores_of(server, params, owned.examples, {}).margins

        return first_margins(known, owned, margins, self.remembered_margins)

    def _reasons(
        self, f: Float64[Tensor, "clients 2"], known_by: PerClient, limit: float, held: Held
    ) -> list[Reason | None]:
        """Return each client's worst penalty, of those with less than an equal share."""
        return [
            Reason(reason.code, 100 * float(known_by[row]), 100 * limit)
            if reason is not None and reason.code == PENALTIES[0]
            else reason
            for row, reason in enumerate(worst_faults(PENALTIES, f, self._theta(), held.weights))
        ]

    def _theta(self) -> Float64[Tensor, " 2"]:
        return torch.tensor([self.known_poison, self.moved_far], dtype=torch.float64)

    def _sure_poison(self, first: PerExample, owned: DefenseSet) -> SurePoison:
        criterion = Criterion(
            self.low_share, self.chance, self.fewest_known, self.prior_examples, self.pile_share
        )
        marked = sure_poison(first, owned.examples.labels, owned.known_clean, criterion)
        return SurePoison.of(owned.examples, marked, first)

    def _penalties(
        self, beyond: PerClient, distance: PerClient, past: Sequence[float]
    ) -> Float64[Tensor, "clients 2"]:
        free = FreeDistance(
            self.free_distance_round, self.free_distance_least, self.free_distance_most
        )
        usual = median(past) if past else torch.inf
        return torch.stack([beyond, moved_far(distance, usual, free)], dim=1).clamp(min=0)

    def _farthest(self, round: Round) -> dict[int, Reason]:
        """Return the clients with the worst Krum scores; none where n < 2f + 3."""
        out = self.num_malicious
        if not 0 < out <= (round.num_clients - 3) // 2:
            return {}
        scores = krum_scores(squared_distances(round.updates), out)
        chosen = scores.sort(stable=True).indices[:-out].tolist()
        reasons = enumerate(not_chosen(scores, chosen))
        return {row: reason for row, reason in reasons if reason is not None}

    def _weights(self, f: Float64[Tensor, "clients 2"], out: Collection[int]) -> PerClient:
        """Return Eq. 3 of the worst penalty, less where few clients have weight; 0: left out."""
        scores = 1 - (f * self._theta()).amax(1)
        scores[list(out)] = 0.0
        whole = self.full_step_share * len(scores)
        return relu_importance(scores) * min(1.0, int((scores > 0).sum()) / whole)

    def _promise(
        self, held: Held, poison: SurePoison, limit: float, *, nobody: bool
    ) -> dict[str, Any]:
        """Return what the report says of the limit: what is known, the limit, what was done."""
        report: dict[str, Any] = {"weakened": NOTHING_SURE}
        if len(poison):
            report = {
                "known_poison": held.known,
                "known_poison_limit": limit,
                "step": held.step,
                "corrected": held.corrected,
            }
        if held.step == 0:
            why = "nobody had weight" if nobody else "no shorter step was safe"
            report["fallback"] = f"{self.name} kept the model: {why}"
        elif held.step < 1:
            report["fallback"] = (
                f"{self.name} took {held.step:g} of the step: the whole would know more than "
                f"{limit:.3f} of the sure poison"
            )
        return report
