"""Constants of the cost of a round, fitted to what was measured."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from benchmarks.defense_cost.scene import FULL, LENET
from datadefense.kernels.networks import selection_network

OWN_PASSES = 4
"""Forward passes over D_d besides the clients': old model, new model, a backward pass as two."""


@dataclass(frozen=True, slots=True)
class Cost:
    """One round as `benchmarks.scale.child` measured it: seconds, and bytes of memory."""

    model: str
    clients: int
    params: int
    examples: int
    defense: str
    in_file: bool
    bytes_received: int
    intake_clock: float
    intake_cpu: float
    clock: float
    cpu: float
    resident_before: int
    resident_peak: int
    result: str


@dataclass(frozen=True, slots=True)
class Formula:
    """CPU seconds of a rule as a sum of constants times sizes, and how far it is off at the worst.

    ``base`` names the formula that is to be added.
    """

    rule: str
    in_file: bool
    seconds: Mapping[str, float]
    base: str | None
    worst: float


def exchanges(clients: int) -> int:
    """Return how many minima and maxima the median of so many values takes."""
    trim = (clients - 1) // 2
    network = selection_network(clients, trim, clients - trim)
    return sum(comparator.needs_min + comparator.needs_max for comparator in network)


def size(times: str, clients: int, params: int, examples: int) -> float:
    """Return what a constant is multiplied by."""
    return float(
        {
            "P": params,
            "n P": clients * params,
            "n^2 P": clients**2 * params,
            "K(n) P": exchanges(clients) * params,
            f"(n + {OWN_PASSES}) E": (clients + OWN_PASSES) * examples,
        }[times]
    )


class Formulas:
    """The formulas of all rules, fitted to costs: least squares of the relative errors."""

    def __init__(self, costs: Sequence[Cost]) -> None:
        self._costs = costs
        self._found: dict[tuple[str, bool], Formula] = {}
        forward = f"(n + {OWN_PASSES}) E"
        for in_file in (False, True):
            self._fit("gate", in_file, ("n P",))
            self._fit("fedavg", in_file, ("n P", "P"))
            self._fit("median", in_file, ("K(n) P",), base="fedavg")
            self._fit("krum", in_file, ("n^2 P",), base="fedavg")
            for model in (LENET, FULL):
                rule = f"datadefense, {model}"
                known = self._found[rule, False].seconds if in_file else {}
                given = {forward: known[forward]} if in_file else {}
                self._fit(rule, in_file, ("n P",) if in_file else (forward, "n P"), given=given)

    def all(self) -> list[Formula]:
        """Return the formulas, of matrices in memory first."""
        return list(self._found.values())

    def seconds(self, rule: str, in_file: bool, clients: int, params: int, examples: int) -> float:
        """Return what a round costs by the formula."""
        formula = self._found[rule, in_file]
        rest = 0.0
        if formula.base is not None:
            rest = self.seconds(formula.base, in_file, clients, params, examples)
        return rest + sum(
            constant * size(times, clients, params, examples)
            for times, constant in formula.seconds.items()
        )

    def _fit(
        self,
        rule: str,
        in_file: bool,
        terms: Sequence[str],
        *,
        base: str | None = None,
        given: Mapping[str, float] | None = None,
    ) -> None:
        """Fit the terms to what the ``base`` and the ``given`` constants leave of the costs."""
        name, _, model = rule.partition(", ")
        defense = "fedavg" if name == "gate" else name
        chosen = [
            cost
            for cost in self._costs
            if cost.in_file is in_file and cost.defense == defense and model in ("", cost.model)
        ]
        total = [cost.intake_cpu if name == "gate" else cost.cpu for cost in chosen]
        self._found[rule, in_file] = Formula(rule, in_file, given or {}, base, 0.0)
        known = [self._of(rule, cost) for cost in chosen]
        y = torch.tensor(total, dtype=torch.float64)
        left = (y - torch.tensor(known, dtype=torch.float64)) / y
        sizes = [[size(t, c.clients, c.params, c.examples) for t in terms] for c in chosen]
        columns = torch.tensor(sizes, dtype=torch.float64) / y[:, None]
        unit = columns.norm(dim=0)
        found = torch.linalg.lstsq(columns / unit, left[:, None]).solution[:, 0] / unit
        constants = {**(given or {}), **dict(zip(terms, found.tolist(), strict=True))}
        worst = float((columns @ found - left).abs().max())
        self._found[rule, in_file] = Formula(rule, in_file, constants, base, worst)

    def _of(self, rule: str, cost: Cost) -> float:
        return self.seconds(rule, cost.in_file, cost.clients, cost.params, cost.examples)
