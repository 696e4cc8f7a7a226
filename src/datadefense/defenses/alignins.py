"""AlignIns: leave out who points another way, by angle with the model and by signs."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from jaxtyping import Float, Float64
from torch import Tensor

from datadefense.core.defense import Combined, Promise, Rule
from datadefense.core.reasons import Reason
from datadefense.core.round import Round
from datadefense.core.settings import check_float, setting
from datadefense.kernels.directions import exact_dots
from datadefense.kernels.mixing import clip_factors
from datadefense.kernels.signs import sign_votes
from datadefense.kernels.spill import release
from datadefense.kernels.sums import norms
from datadefense.kernels.top import top_mask

NO_SPREAD = 1e-9
"""A standard deviation of cosines or shares up to this is rounding: nobody is an outlier."""
LEAST = 3
"""Of two clients that differ both are one standard deviation from their median."""


def median_z_scores(values: Float64[Tensor, " clients"]) -> Float64[Tensor, " clients"]:
    r"""Return :math:`|x_j - \mathrm{median}(x)| / \sigma(x)`; zeros where nothing differs.

    The deviation is that of the population; the median of an even number is the mean of two.

    >>> median_z_scores(torch.tensor([1.0, 2.0, 6.0], dtype=torch.float64)).tolist()[1]
    0.0
    """
    deviation = float(values.std(correction=0))
    if deviation <= NO_SPREAD:
        return torch.zeros_like(values)
    return (values - values.quantile(0.5)).abs() / deviation


def cosines_with(
    updates: Float[Tensor, "clients dim"], vector: Float[Tensor, " dim"]
) -> Float64[Tensor, " clients"]:
    """Return the cosine of each row with a vector; 0 where one of them is zero."""
    lengths = norms(updates) * norms(vector[None])
    found = exact_dots(updates, vector) / lengths
    return torch.nan_to_num(found, nan=0.0, posinf=0.0, neginf=0.0).clamp(-1, 1)


def principal_sign_shares(
    updates: Float[Tensor, "clients dim"], top_fraction: float
) -> Float64[Tensor, " clients"]:
    """Return the share of each client's largest coordinates that have the majority's sign.

    A coordinate without a majority agrees with a value of 0 only.
    """
    clients, dim = updates.shape
    principal = sign_votes(updates).sign_()
    count = max(1, int(top_fraction * dim + 1e-9))
    shares = torch.zeros(clients, dtype=torch.float64)
    for row in range(clients):
        values = updates[row].clone()
        release(updates)
        agree = (values.sign() == principal).logical_and_(top_mask(values, count))
        shares[row] = int(agree.count_nonzero()) / count
    return shares


@dataclass(frozen=True, slots=True)
class AlignIns(Rule):
    r"""Average, clipped, who is near the median in two measures of direction.

    .. math::
        \mathrm{TDA}_j &= \cos(u_j, g), \qquad
        p = \mathrm{sign} \sum_j \mathrm{sign}(u_j) \\
        \mathrm{MPSA}_j &= \frac{1}{k} \sum_{i \in \mathrm{top}_k |u_j|}
                           [\mathrm{sign}(u_{ji}) = p_i] \\
        A &= \Big\{ j : \frac{|x_j - \mathrm{median}(x)|}{\sigma(x)} < \lambda_x
             \text{ for } x = \mathrm{TDA}, \mathrm{MPSA} \Big\} \\
        u &= \sum_{j \in A} \frac{n_j}{\sum_{i \in A} n_i} u_j
             \min\Big(1, \frac{\mathrm{median}_{i \in A} \lVert u_i \rVert}{\lVert u_j \rVert}\Big)

    g is the global model, k a share of the coordinates. If nobody is kept the model stays. At one
    standard deviation about a third of honest clients fail each test in peace. Where a measure does
    not differ between clients nobody fails it. Needs n >= 3: of two both are one deviation from
    their median; with fewer clients the model stays. Not bounded: the norm of the kept is the
    bound, and they may be few.

    Reference: Xu et al., *Detecting Backdoor Attacks in Federated Learning via Direction Alignment
    Inspection*, CVPR 2025.

    Differs: the authors' code puts BatchNorm's counters into the vector and divides 0 by 0 where
    nothing differs; BackFed's copy does not weigh by examples.
    """

    direction_limit: float = setting(1.0, "most standard deviations lambda_c of TDA")
    sign_limit: float = setting(1.0, "most standard deviations lambda_s of MPSA")
    top_fraction: float = setting(0.3, "share k / dim of the coordinates whose signs are compared")

    name: ClassVar[str] = "alignins"
    promises: ClassVar[Promise] = Promise.SYMMETRIC | Promise.WEIGHTED | Promise.UNANIMOUS

    def __post_init__(self) -> None:
        check_float("direction_limit", self.direction_limit, above=0)
        check_float("sign_limit", self.sign_limit, above=0)
        check_float("top_fraction", self.top_fraction, above=0, maximum=1)

    def shortage(self, num_clients: int) -> str | None:
        """A median that is not between two: n >= 3."""
        if num_clients >= LEAST:
            return None
        return f"{self.name} needs n >= {LEAST}, got n={num_clients}"

    def combine(self, round: Round) -> Combined:
        """Weight by examples who passes both tests, clipped."""
        direction = cosines_with(round.updates, round.global_params)
        signs = principal_sign_shares(round.updates, self.top_fraction)
        far, odd = median_z_scores(direction), median_z_scores(signs)
        kept = (far < self.direction_limit) & (odd < self.sign_limit)
        lengths = norms(round.updates)
        bound = float(lengths[kept].quantile(0.5)) if bool(kept.any()) else 0.0
        shares = round.num_examples.double() * kept
        weights = clip_factors(lengths, bound) * shares / shares.sum().clamp(min=1)
        reasons = [
            Reason("off_direction", one, self.direction_limit)
            if one >= self.direction_limit
            else Reason("off_signs", two, self.sign_limit)
            if two >= self.sign_limit
            else Reason("norm", length, bound)
            if length > bound
            else None
            for one, two, length in zip(far.tolist(), odd.tolist(), lengths.tolist(), strict=True)
        ]
        return Combined(
            weights=weights.to(round.updates.dtype),
            evidence={
                "direction": direction,
                "principal_signs": signs,
                "off_direction": far,
                "off_signs": odd,
                "norm": lengths,
            },
            report={"kept": int(kept.sum()), "norm_bound": bound},
            reasons=reasons,
        )
