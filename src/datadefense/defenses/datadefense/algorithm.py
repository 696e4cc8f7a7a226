"""DataDefense, the default: what is surely poison is not learned, round after round."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import median
from typing import Any, ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.core.defense import Defense, Promise
from datadefense.core.defense_set import DefenseSet
from datadefense.core.needs import Need
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import check_float, check_int, setting
from datadefense.defenses.datadefense.client_losses import (
    NEEDS,
    WORST,
    client_losses,
    defense_set_of,
    mean_loss,
)
from datadefense.defenses.datadefense.faults import Measured, learned_poison, moved_far
from datadefense.defenses.datadefense.hold import Held, hold
from datadefense.defenses.datadefense.importance import PerClient, relu_importance
from datadefense.defenses.datadefense.losses import PerExample
from datadefense.defenses.datadefense.model_scores import Answers, Kept, answers_of, keep
from datadefense.defenses.datadefense.sure_poison import SurePoison, sure_poison, suspicion
from datadefense.defenses.datadefense.usual_distance import remembered
from datadefense.defenses.krum import krum_scores
from datadefense.kernels.distances import squared_distances
from datadefense.kernels.sums import add_weighted, norms

FAULTS = ("learned_poison", "moved_far")
"""What speaks against a client, in the order of the columns."""
FARTHEST, BROKEN = "farthest from the others (Krum score)", "its loss is not finite, or huge"
"""Why a client is out of a round, whatever its faults."""
REMEMBERED = 100_000
"""Most first margins that are remembered, beside those of the set."""
NOTHING_SURE = "no example is surely poisoned: the farthest updates are left out instead"


@dataclass(frozen=True, slots=True, eq=False)
class DataDefenseState:
    """What is remembered: usual distances, and the first margin of each example and label.

    Those of examples that have left the set are remembered too, lest one that comes back be judged
    by a model that has learned it meanwhile; the oldest go when there are more than `REMEMBERED`.
    ``kept`` saves work and changes nothing: what the model that was made last gives on the set.
    """

    distances: tuple[float, ...] = ()
    first_margins: dict[str, float] = field(default_factory=dict)
    kept: Kept = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class DataDefense(Defense[DataDefenseState]):
    r"""Leave out who learned the poison, and never release a model that has.

    In a round: (1) the examples that are surely poisoned are those whose labels the *first* model
    found absurd, piled up under one label (`sure_poison`); (2) every client's model is tried on the
    defense set: how much it learned of the sure poison, and how far it moved, are its `faults`
    (one whose loss on some example is not finite, or huge, is left out); (3) its worst fault
    decides,

    .. math:: r_j = \mathrm{ReLU}\bigl(1 - \max_i \theta_i f_{ji}\bigr), \qquad
        C_j = \min\Bigl(1, \frac{2\,\#\{r > 0\}}{n}\Bigr) \frac{r_j}{\sum_k r_k}, \qquad
        \bar\phi^t = \bar\phi^{t-1} + \sum_j C_j (\phi_j - \bar\phi^{t-1})

    (Eq. 2 and 3 with fixed theta; the step is whole while half of the clients count, and shorter
    below that, so that a round does not rest on the few that are left); (4) `hold`: with S the mean
    probability of the sure poison's labels, the model is released only if

    .. math:: S(\bar\phi^t) \le \max\bigl(S(\bar\phi^0) + \mathrm{slack},\ S(\bar\phi^{t-1})\bigr)

    else clients that know most of it are left out, the step is shortened, or the old model stays.
    The reference is the first model's, so no patience moves it; the second term only matters when
    the set has changed. Where nothing is surely poisoned there is nothing to hold, and the
    ``num_malicious`` updates with the worst Krum scores are left out instead.

    Weights do not depend on the claimed numbers of examples. Differs from the paper in all but its
    data and its features: see ``docs/deviations.md``. With the learned detector and importance:
    `DataDefenseLearned`; as printed: `DataDefensePaper`, `DataDefenseAppendix`,
    `DataDefenseReleased`.

    Reference: Purohit et al., *A Data-Driven Defense against Edge-case Model Poisoning Attacks on
    Federated Learning*, ECAI 2024.
    """

    slack: float = setting(
        0.03, "most that the model may know of the sure poison beyond the first model; 1: no limit"
    )
    learned_poison: float = setting(1.5, "theta of learning the sure poison; 0: no fault")
    moved_far: float = setting(0.2, "theta of moving further than the others; 0: no fault")
    low_share: float = setting(0.1, "share of the known clean examples that count as low too")
    chance: float = setting(3e-5, "likelihood of luck below which a pile of low examples is sure")
    num_malicious: int = setting(1, "updates left out of a round where no poison is sure")

    name: ClassVar[str] = "datadefense"
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.WEIGHTED | Promise.UNANIMOUS | Promise.BOUNDED
    )
    needs: ClassVar[Need] = NEEDS

    def __post_init__(self) -> None:
        check_float("slack", self.slack, minimum=0, maximum=1)
        for name in FAULTS:
            check_float(name, getattr(self, name), minimum=0)
        check_float("low_share", self.low_share, above=0, below=1)
        check_float("chance", self.chance, minimum=0, maximum=1)
        check_int("num_malicious", self.num_malicious, 0)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> DataDefenseState:
        """Remember what the first model makes of each example."""
        owned = defense_set_of(server, self.name)
        given = answers_of(server, params, owned.examples, {})
        first = dict(zip(_names(owned), given.margins.tolist(), strict=True))
        return DataDefenseState((), first, keep(params, owned.examples, given))

    def aggregate(
        self, state: DataDefenseState, round: Round, server: Server
    ) -> Aggregate[DataDefenseState]:
        """Find the sure poison, measure the clients, weigh them, hold."""
        owned = defense_set_of(server, self.name, least=0)
        released = answers_of(server, round.global_params, owned.examples, state.kept)
        first_margins = _first_margins(state, owned, released)
        first = torch.tensor([first_margins[name] for name in _names(owned)])
        poison = self._sure_poison(first, owned)
        losses = client_losses(server, round, owned)
        measured = _measure(state, round, released, losses, poison)
        f = torch.stack([learned_poison(measured), moved_far(measured)], dim=1).clamp(min=0)
        out = dict.fromkeys(self._farthest(round), FARTHEST) if not len(poison) else {}
        out |= dict.fromkeys((losses >= WORST).any(1).nonzero().flatten().tolist(), BROKEN)
        C = self._weights(f, out)
        known_by, before = poison.known_by(losses), float(poison.known_by(released.losses[None]))
        held = hold(
            lambda weights: add_weighted(round.global_params, weights, round.updates),
            lambda params: poison.known(server, params),
            C,
            known_by,
            limit=(limit := max(poison.reference + self.slack, before)),
            old=Held(round.global_params.clone(), torch.zeros_like(C), C > 0, 0.0, before),
        )
        given = answers_of(server, held.params, owned.examples, {})
        theta = self._theta()
        blameless = (f[:, 0] * theta[0] < 1) & (losses < WORST).all(1)
        return Aggregate(
            held.params,
            DataDefenseState(
                remembered(state.distances, measured.distance[blameless]),
                first_margins,
                keep(held.params, owned.examples, given),
            ),
            held.weights.to(round.updates.dtype),
            {
                "clean_loss": measured.clean,
                "poison_loss": mean_loss(losses, poison.marked),
                "distance": measured.distance,
                "known_poison": known_by,
                **{name: f[:, place] for place, name in enumerate(FAULTS)},
            },
            {
                "gamma": [float(f"{s:.4g}") for s in suspicion(first, owned.known_clean).tolist()],
                "marked": poison.marked.nonzero().flatten().tolist(),
                "reasons": _reasons(f, theta, known_by, held, out),
                "released_clean_loss": measured.released_clean,
                "released_poison_loss": measured.released_poison,
                **self._promise(held, poison, limit),
            },
        )

    def _theta(self) -> Float64[Tensor, " 2"]:
        return torch.tensor([self.learned_poison, self.moved_far], dtype=torch.float64)

    def _sure_poison(self, first: PerExample, owned: DefenseSet) -> SurePoison:
        marked = sure_poison(
            first,
            owned.examples.labels,
            owned.known_clean,
            share=self.low_share,
            chance=self.chance,
        )
        return SurePoison.of(owned.examples, marked, first)

    def _farthest(self, round: Round) -> list[int]:
        """Return who has the worst Krum scores, where there are clients enough: n >= 2f + 3."""
        out = self.num_malicious
        if not 0 < out <= (round.num_clients - 3) // 2:
            return []
        scores = krum_scores(squared_distances(round.updates), out)
        return scores.sort(stable=True).indices[-out:].tolist()

    def _weights(self, f: Float64[Tensor, "clients 2"], out: Mapping[int, str]) -> PerClient:
        """Return Eq. 3 of the worst fault, less where fewer than half count; 0 for who is out."""
        scores = 1 - (f * self._theta()).amax(1)
        scores[list(out)] = 0.0
        return relu_importance(scores) * min(1.0, 2 * int((scores > 0).sum()) / len(scores))

    def _promise(self, held: Held, poison: SurePoison, limit: float) -> dict[str, Any]:
        """Return what the report says of the promise: what is known, what was allowed and done."""
        report: dict[str, Any] = {"nothing_sure": NOTHING_SURE}
        if len(poison):
            report = {
                "known_poison": held.known,
                "known_poison_limit": limit,
                "left_out": int(held.left_out.sum()),
                "step": held.step,
            }
        if held.step == 0:
            why = "no shorter step was safe" if bool(held.left_out.any()) else "nobody had weight"
            report["fallback"] = f"{self.name} kept the model: {why}"
        elif held.step < 1:
            report["fallback"] = (
                f"{self.name} took {held.step:g} of the step: the whole would know more than "
                f"{limit:.3f} of the sure poison"
            )
        return report


def _measure(
    state: DataDefenseState,
    round: Round,
    released: Answers,
    losses: Float[Tensor, "clients examples"],
    poison: SurePoison,
) -> Measured:
    """Return the mean losses on the sure poison and on the rest, and the distances."""
    sure = poison.marked
    return Measured(
        clean=mean_loss(losses, ~sure),
        poison=mean_loss(losses, sure),
        distance=norms(round.updates),
        released_clean=float(mean_loss(released.losses[None], ~sure)),
        released_poison=float(mean_loss(released.losses[None], sure)),
        usual_distance=median(state.distances) if state.distances else torch.inf,
    )


def _names(owned: DefenseSet) -> list[str]:
    """Return what an example is known by: its label and its id. With another label it is new."""
    labels = owned.examples.labels.tolist()
    return [f"{label} {one}" for label, one in zip(labels, owned.ids, strict=True)]


def _first_margins(
    state: DataDefenseState, owned: DefenseSet, released: Answers
) -> dict[str, float]:
    """Return the first margin of each example so far; new ones get today's."""
    known = state.first_margins
    today = dict(zip(_names(owned), released.margins.tolist(), strict=True))
    new = {name: margin for name, margin in today.items() if name not in known}
    if not new:
        return known
    absent = [name for name in known if name not in today]
    forgotten = set(absent[: max(0, len(absent) - REMEMBERED)])
    return {name: margin for name, margin in known.items() if name not in forgotten} | new


def _reasons(
    f: Float64[Tensor, "clients 2"],
    theta: Tensor,
    known_by: PerClient,
    held: Held,
    out: Mapping[int, str],
) -> list[str]:
    """Return what cost each client weight: distance, what it knows of the poison, a fault."""
    costs = f * theta
    places = costs.argmax(1).tolist()
    reasons = []
    for row, place in enumerate(places):
        if row in out:
            reasons.append(out[row])
        elif bool(held.left_out[row]):
            reasons.append(f"known_poison {float(known_by[row]):.3g}")
        elif float(costs[row, place]) > 0:
            reasons.append(f"{FAULTS[place]} {float(f[row, place]):.3g}")
        else:
            reasons.append("")
    return reasons
