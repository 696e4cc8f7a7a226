"""Multi-Metrics: keep the clients whose three distances from all others are smallest together."""

from dataclasses import dataclass
from typing import ClassVar, Literal

import torch
from jaxtyping import Float64
from torch import Tensor

from datadefense.core.defense import Combined, Promise, Rule
from datadefense.core.reasons import Reason
from datadefense.core.round import Round
from datadefense.core.settings import check_choice, check_float, setting
from datadefense.kernels.directions import absolute_distances, cosine_distances, exact_gram

ROUNDING = 1e-12
"""Norms that differ by no more than this share of the longest are equal."""
NO_SPREAD = 1e-9
"""A column whose deviation is at most this share of its greatest value says nothing."""


def whitened_scores(table: Float64[Tensor, "clients metrics"]) -> Float64[Tensor, " clients"]:
    r"""Return :math:`t_j^\top C^{-1} t_j` with the covariance C of the columns; not centred.

    Scaling a column changes nothing, so columns are brought to deviation 1 first. What the columns
    say twice counts once (pseudo-inverse), and a column that is the same for all is left out; if
    all are, the scores are 0.
    """
    scaled = table / table.amax(0).clamp(min=torch.finfo(table.dtype).tiny)
    spread = scaled.std(0) if len(table) > 1 else torch.zeros_like(table[0])
    telling = spread > NO_SPREAD
    if not bool(telling.any()):
        return torch.zeros_like(table[:, 0])
    columns = scaled[:, telling] / spread[telling]
    covariance = columns.T.cov().reshape(columns.shape[1], -1)
    values, vectors = torch.linalg.eigh(covariance)
    solid = values > NO_SPREAD * values[-1]
    scores: Tensor = ((columns @ vectors[:, solid]).square() / values[solid]).sum(1)
    return scores


@dataclass(frozen=True, slots=True)
class MultiMetrics(Rule):
    r"""Average the p n clients that are least far from all others in three metrics together.

    .. math::
        t_j &= \Big( \sum_k (1 - \cos(w_j, w_k))^2, \;
                     \sum_k \lVert w_j - w_k \rVert_1, \;
                     \sum_k \big| \lVert w_j \rVert - \lVert w_k \rVert \big| \Big) \\
        s_j &= t_j^\top C^{-1} t_j, \qquad C = \mathrm{cov}(t)

    with the models :math:`w_j = g + u_j`, or updates with ``space="updates"``. The p n clients
    (rounded down, at least one) with the smallest scores are averaged by examples; ties go to the
    lower index. Where no metric differs nobody is left out. Any number of clients; one or two are
    all kept. Not bounded: the score is of no distribution, and a far client changes C for all. l1
    distances take n^2 dim steps, in one pass.

    Reference: Huang et al., *Multi-metrics adaptively identifies backdoors in Federated learning*,
    ICCV 2023. The third metric is called Euclidean there and is a difference of norms in the
    authors' code, as here.

    Differs: the authors' code inverts C, which fails for n <= 3 and equal columns. AlignIns's copy
    takes updates; BackFed's keeps half.
    """

    keep: float = setting(0.3, "share p of the clients that is kept")
    space: Literal["models", "updates"] = setting("models", "what is compared: models or updates")

    name: ClassVar[str] = "multi-metrics"
    promises: ClassVar[Promise] = (
        Promise.SYMMETRIC | Promise.WEIGHTED | Promise.SUMS_TO_ONE | Promise.UNANIMOUS
    )

    def __post_init__(self) -> None:
        check_float("keep", self.keep, above=0, maximum=1)
        check_choice("space", self.space, ("models", "updates"))

    def combine(self, round: Round) -> Combined:
        """Weight the chosen by examples."""
        gram = exact_gram(round.updates, round.global_params if self.space == "models" else None)
        lengths = gram.diagonal().sqrt()
        gaps = (lengths[:, None] - lengths[None, :]).abs()
        gaps[gaps <= ROUNDING * float(lengths.max())] = 0
        metrics = {
            "cosine_sum": cosine_distances(gram).square().sum(1),
            "l1_sum": absolute_distances(round.updates).sum(1),
            "norm_sum": gaps.sum(1),
        }
        scores = whitened_scores(torch.stack(list(metrics.values()), dim=1))
        count = max(1, int(self.keep * round.num_clients + 1e-9))
        if not bool(scores.any()):
            count = round.num_clients
        chosen = scores.sort(stable=True).indices[:count]
        counts = torch.zeros_like(scores)
        counts[chosen] = round.num_examples[chosen].double()
        worst = float(scores[chosen].max())
        kept = set(chosen.tolist())
        return Combined(
            weights=(counts / counts.sum()).to(round.updates.dtype),
            evidence={"score": scores, **metrics},
            report={"kept": count},
            reasons=[
                None if row in kept else Reason("metrics_score", score, worst)
                for row, score in enumerate(scores.tolist())
            ],
        )
