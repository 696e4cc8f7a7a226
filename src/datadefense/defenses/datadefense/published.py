"""DataDefense as published, one class and two presets: Algorithms 1 and 2, the authors' code."""

import math
from dataclasses import dataclass
from typing import ClassVar, Literal

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
from datadefense.core.settings import check_choice, check_float, check_int, setting
from datadefense.defenses.datadefense.client_losses import (
    NEEDS,
    client_losses,
    defense_set_of,
    mean_loss,
    split,
)
from datadefense.defenses.datadefense.detector import (
    Psi,
    draw_psi,
    g_2,
    gamma,
    min_max,
    y_hat_logits,
)
from datadefense.defenses.datadefense.detector_loss import L_pred, L_psi, V, l_consist
from datadefense.defenses.datadefense.importance import (
    L_theta,
    Reduction,
    gradient_in_theta,
    linear_importance,
    relu_importance,
)
from datadefense.defenses.datadefense.losses import PerExample, l_c, l_p, margin
from datadefense.kernels.sums import add_weighted, dots, norms

Start = Literal["normal", "xavier"]
Form = Literal["relu", "linear"]
PsiUpdate = Literal["before", "after"]


@dataclass(frozen=True, slots=True, eq=False)
class PublishedState:
    """theta and psi after a round; plain gradient descent has no optimiser state."""

    theta: Float64[Tensor, " features"]
    psi: Psi


@dataclass(frozen=True, slots=True)
class DataDefensePaper(Defense[PublishedState]):
    r"""The paper's Algorithm 1, line by line, with Eq. 2 to 11.

    Split D_d by gamma(psi^{t-1}); update psi on the model before this round (line 8); weight
    clients by theta^{t-1} and make the model (lines 10 and 11); take one step of theta at the new
    model (line 12). ``docs/deviations.md`` says how open questions were decided. Every choice in
    which the three published forms differ is a setting; `DataDefenseAppendix` and
    `DataDefenseReleased` are this class with other defaults.

    For comparison only; use `DataDefense`. About a third of the random starts give all clients
    weight 0 for ever, and a first round that favours the attacker poisons the model from which the
    detector then learns.

    Reference: Purohit et al., *A Data-Driven Defense against Edge-case Model Poisoning Attacks on
    Federated Learning*, ECAI 2024.
    """

    beta: float = setting(0.2, "share of the defense set that is taken for poisoned")
    form: Form = setting("relu", "relu (Eq. 3) or linear, which allows negative weights")
    features: int = setting(3, "3: losses and distance; 4: the share of examples as well")
    theta_start: Start = setting("normal", "how theta is drawn: normal or xavier")
    theta_rate: float = setting(0.01, "step size alpha of theta")
    theta_loss: Reduction = setting("sum", "losses over D_dc and D_dp (Eq. 6): sum or mean")
    psi_update: PsiUpdate = setting(
        "before", "update psi before the new model is made, on the old one, or after, on the new"
    )
    psi_rate: float = setting(0.001, "step size eta of psi")
    psi_decay_every: int = setting(300, "rounds after which eta falls to a tenth")
    psi_scale: float = setting(1.0, "factor on V in the update of psi")
    lam: float = setting(10.0, "weight lambda of L_pred in the rounds (Eq. 10)")
    start_lam: float = setting(10.0, "weight lambda of L_pred in the consistent start (Eq. 11)")
    start_steps: int = setting(100, "steps of the consistent start")
    start_rate: float = setting(1e-5, "step size of the consistent start")
    hidden: int = setting(256, "width of the detector's hidden layers")
    halt_after: int | None = setting(None, "round after which theta and psi stay; none: never")

    name: ClassVar[str] = "datadefense-paper"
    promises: ClassVar[Promise] = Promise.SYMMETRIC | Promise.WEIGHTED
    needs: ClassVar[Need] = NEEDS

    def __post_init__(self) -> None:
        check_float("beta", self.beta, minimum=0, maximum=1)
        check_choice("form", self.form, ("relu", "linear"))
        check_choice("theta_start", self.theta_start, ("normal", "xavier"))
        check_choice("theta_loss", self.theta_loss, ("sum", "mean"))
        check_choice("psi_update", self.psi_update, ("before", "after"))
        check_choice("features", str(self.features), ("3", "4"))
        for name in ("theta_rate", "psi_rate", "psi_scale", "lam", "start_lam", "start_rate"):
            check_float(name, getattr(self, name), minimum=0)
        check_int("psi_decay_every", self.psi_decay_every, 1)
        check_int("start_steps", self.start_steps, 0)
        check_int("hidden", self.hidden, 1)
        if self.halt_after is not None:
            check_int("halt_after", self.halt_after, 0)

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> PublishedState:
        """Draw theta^0 and find psi^0, consistent with D_clean (Eq. 11)."""
        owned = defense_set_of(server, self.name)
        with torch.no_grad():
            classes = server.logits(params, owned.examples.inputs[:1]).shape[1]
        draw = server.generator(self.name, "psi")
        psi = draw_psi(owned.features.shape[1], classes, draw, self.hidden)
        for _ in range(self.start_steps):
            psi = self._descend(psi, owned, None, self.start_rate, self.start_lam)
        theta = torch.randn(
            self.features, generator=server.generator(self.name, "theta"), dtype=torch.float64
        )
        if self.theta_start == "xavier":
            theta *= (2 / (1 + self.features)) ** 0.5
        return PublishedState(theta, psi)

    def aggregate(
        self, state: PublishedState, round: Round, server: Server
    ) -> Aggregate[PublishedState]:
        """Run the body of the loop over t."""
        owned = defense_set_of(server, self.name)
        inputs, y = owned.examples.inputs, owned.examples.labels
        halted = self.halt_after is not None and round.index > self.halt_after
        with torch.no_grad():
            scores = gamma(state.psi, owned.features, y)
            before = server.logits(round.global_params, inputs)
        marked = split(scores, self.beta)
        psi = state.psi
        if self.psi_update == "before" and not halted:
            psi = self._step(psi, owned, margin(before, y), round.index)
        s = self._client_features(round, owned, server, marked)
        r = s @ state.theta
        C = relu_importance(r) if self.form == "relu" else linear_importance(r)
        params = add_weighted(round.global_params, C, round.updates)
        phi = params.detach().clone().requires_grad_()
        after = server.logits(phi, inputs)
        loss = L_theta(l_c(after, y), l_p(after, y), marked, self.theta_loss)
        (slope,) = torch.autograd.grad(loss, phi)
        theta = state.theta
        if not halted:
            active = r > 0 if self.form == "relu" else torch.ones_like(r, dtype=torch.bool)
            step = gradient_in_theta(r, C, s, dots(round.updates, slope), active)
            theta = theta - self.theta_rate * step.nan_to_num(0.0, 0.0, 0.0)
            if self.psi_update == "after":
                psi = self._step(psi, owned, margin(after.detach(), y), round.index)
        names = ("clean_loss", "poison_loss", "distance", "share")[: self.features]
        found = float(loss.detach())
        report: dict[str, object] = {
            "loss": found if math.isfinite(found) else None,
        }
        if not bool((C != 0).any()):
            report["dead"] = "every theta . s_j <= 0: the model stays, and theta has no gradient"
        return Aggregate(
            params,
            PublishedState(theta, psi),
            C.to(round.updates.dtype),
            {name: s[:, place] for place, name in enumerate(names)},
            report,
            [
                None if weight > 0 else Reason("importance", value, 0.0)
                for weight, value in zip(C.tolist(), r.tolist(), strict=True)
            ],
            DetectorRecord.of(owned, scores, marked),
            dict(zip(names, state.theta.tolist(), strict=True)),
        )

    def _client_features(
        self, round: Round, owned: DefenseSet, server: Server, marked: Tensor
    ) -> Float64[Tensor, "clients features"]:
        """Return s_j = [L_dc, L_dp, dist] of each client, and n_j / n as the fourth."""
        losses = client_losses(server, round, owned)
        columns = [
            mean_loss(losses, ~marked),
            mean_loss(losses, marked),
            norms(round.updates),
            round.num_examples / round.num_examples.sum(),
        ]
        return torch.stack([c.to(torch.float64) for c in columns[: self.features]], dim=1)

    def _step(self, psi: Psi, owned: DefenseSet, margins: PerExample, index: int) -> Psi:
        rate = self.psi_rate * 0.1 ** ((index - 1) // self.psi_decay_every)
        return self._descend(psi, owned, margins, rate, self.lam)

    def _descend(
        self, psi: Psi, owned: DefenseSet, margins: PerExample | None, rate: float, lam: float
    ) -> Psi:
        """Take one step of gradient descent: on Eq. 10 with margins, on Eq. 11 without."""
        weights = [weight.detach().clone().requires_grad_() for weight in psi]
        current = Psi(*weights)
        y, known = owned.examples.labels, owned.known_clean
        prediction = y_hat_logits(current, owned.features)
        scores = min_max(g_2(current, prediction, y))
        first = l_consist(scores, known) if margins is None else self.psi_scale * V(scores, margins)
        loss = L_psi(first, L_pred(prediction, y, known), lam)
        slopes = torch.autograd.grad(loss, weights, allow_unused=True)
        return Psi(
            *(
                (
                    weight if slope is None else weight - rate * slope.nan_to_num(0.0, 0.0, 0.0)
                ).detach()
                for weight, slope in zip(weights, slopes, strict=True)
            )
        )


@dataclass(frozen=True, slots=True)
class DataDefenseAppendix(DataDefensePaper):
    """The appendix's Algorithm 2: psi is updated after the round, on the new model, by V alone."""

    psi_update: PsiUpdate = setting(
        "after", "update psi before the new model is made, on the old one, or after, on the new"
    )
    lam: float = setting(0.0, "weight lambda of L_pred in the rounds (Eq. 10)")

    name: ClassVar[str] = "datadefense-appendix"


@dataclass(frozen=True, slots=True)
class DataDefenseReleased(DataDefensePaper):
    """The authors' code: linear weights, four features, means, Xavier; psi as in Algorithm 2.

    The code takes sixteen steps a round on minibatches, all computed at one point, so they are one
    step: 0.16 on the means for theta, and V / 32 for psi.
    """

    form: Form = setting("linear", "relu (Eq. 3) or linear, which allows negative weights")
    features: int = setting(4, "3: losses and distance; 4: the share of examples as well")
    theta_start: Start = setting("xavier", "how theta is drawn: normal or xavier")
    theta_rate: float = setting(0.16, "step size alpha of theta")
    theta_loss: Reduction = setting("mean", "losses over D_dc and D_dp (Eq. 6): sum or mean")
    psi_update: PsiUpdate = setting(
        "after", "update psi before the new model is made, on the old one, or after, on the new"
    )
    psi_scale: float = setting(1 / 32, "factor on V in the update of psi")
    lam: float = setting(0.0, "weight lambda of L_pred in the rounds (Eq. 10)")

    name: ClassVar[str] = "datadefense-released"
    promises: ClassVar[Promise] = Promise.SYMMETRIC | Promise.WEIGHTED | Promise.SIGNED
