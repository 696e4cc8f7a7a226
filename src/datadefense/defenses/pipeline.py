"""Pipeline: pre-aggregators, a defense and post-aggregators as one defense."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import reduce
from operator import and_, or_
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor

from datadefense.core.defense import Combined, Defense, Promise, fall_back
from datadefense.core.needs import Need
from datadefense.core.postaggregator import PostAggregator
from datadefense.core.preaggregator import PreAggregator, Prepared
from datadefense.core.round import Aggregate, Round
from datadefense.core.server import Server
from datadefense.core.settings import SettingsError

Part = PreAggregator[Any] | Defense[Any] | PostAggregator[Any]
"""What a pipeline is made of."""


@dataclass(frozen=True, slots=True, eq=False)
class PipelineState:
    """What the parts remember, in their order."""

    before: tuple[Any, ...]
    rule: Any
    after: tuple[Any, ...]


@dataclass(frozen=True, slots=True, eq=False)
class _Stage:
    """A pre-aggregator at work: what went in and what came out."""

    part: PreAggregator[Any]
    given: Round
    made: Prepared[Any]


@dataclass(frozen=True, slots=True)
class Pipeline(Defense[PipelineState]):
    """Prepare the round, let a defense aggregate it, make a step of the result.

    ``create("clip+nnm+multi-krum+fedadam")`` makes one. Where every pre-aggregator is linear,
    :math:`U' = A U`, the weights w of the rule's rows come back as weights :math:`A^T w` of the
    clients. Evidence and report of the rule keep their names (evidence about rows that a
    pre-aggregator has mixed or scaled is called ``mixed.NAME``: it is not of what a client sent);
    those of other parts are ``PART.NAME``.

    In a round too small for a part it falls back as a `Rule` does: on the median of each coordinate
    of what the clients sent while n >= 2f + 1, else the model stays. Post-aggregators make a step
    of the median as of any update; where the model stays, they are not asked.

    Promises are those of the rule that each other part says it keeps.
    """

    before: tuple[PreAggregator[Any], ...]
    rule: Defense[Any]
    after: tuple[PostAggregator[Any], ...] = ()

    @property
    def revision(self) -> int:  # type: ignore[override]
        """The rule's: stored runs of a pipeline go by it."""
        return self.rule.revision

    def __post_init__(self) -> None:
        if isinstance(self.rule, Pipeline):
            raise SettingsError("the rule of a pipeline must not be a pipeline: join their parts")
        names = [part.name for part in self.parts()]
        if twice := [name for name in names if names.count(name) > 1]:
            raise SettingsError(f"a part must be in a pipeline once, {twice[0]} is there twice")
        for part in self.before:
            if Need.CLIENT_IDENTITY in self.rule.needs and not part.one_row_a_client:
                raise SettingsError(
                    f"{self.rule.name} knows clients by their ids, and behind {part.name} a row "
                    "is no client: leave one of them out"
                )

    def parts(self) -> tuple[Part, ...]:
        """Return all parts in their order."""
        return (*self.before, self.rule, *self.after)

    @property
    def name(self) -> str:  # type: ignore[override] # a class has no parts, a pipeline has
        """The names of the parts, joined."""
        return "+".join(part.name for part in self.parts())

    @property
    def promises(self) -> Promise:  # type: ignore[override]
        """What survives of the rule's promises. That weights may be negative always does."""
        kept = reduce(and_, (part.keeps for part in self._others()), self.rule.promises)
        return kept | (self.rule.promises & Promise.SIGNED)

    @property
    def needs(self) -> Need:  # type: ignore[override]
        """What any part needs."""
        return reduce(or_, (part.needs for part in self.parts()))

    def _others(self) -> Iterator[PreAggregator[Any] | PostAggregator[Any]]:
        yield from self.before
        yield from self.after

    def assumed_malicious(self) -> int:
        """Return how many attackers all parts bear: the least of their numbers."""
        assumed = [part.assumed_malicious() for part in self.before]
        return min([self.rule.assumed_malicious(), *(f for f in assumed if f is not None)])

    def shortage(self, num_clients: int) -> str | None:
        """Say which part has too few rows; behind a part that makes fewer, of its rows."""
        rows = num_clients
        for part in self.before:
            if problem := part.shortage(rows):
                return _of_rows(problem, num_clients, rows)
            rows = part.num_rows(rows)
        if problem := self.rule.shortage(rows):
            return _of_rows(problem, num_clients, rows)
        malicious = self.assumed_malicious()
        if (
            rows < num_clients
            and rows < 2 * malicious + 1
            and Promise.BOUNDED in self.rule.promises
        ):
            problem = f"{self.name} needs rows >= 2f + 1, got rows={rows}, f={malicious}"
            return _of_rows(problem, num_clients, rows)
        return None

    def init(self, server: Server, params: Float[Tensor, " dim"]) -> PipelineState:
        """Return the states of all parts before the first round."""
        return PipelineState(
            tuple(part.init(server, params) for part in self.before),
            self.rule.init(server, params),
            tuple(part.init(server, params) for part in self.after),
        )

    def sent(
        self, state: PipelineState, params: Float[Tensor, " dim"], server: Server, round_index: int
    ) -> Float[Tensor, " dim"]:
        """Return the model that the rule sends."""
        return self.rule.sent(state.rule, params, server, round_index)

    def aggregate(
        self, state: PipelineState, round: Round, server: Server
    ) -> Aggregate[PipelineState]:
        """Prepare, aggregate, step."""
        if problem := self.shortage(round.num_clients):
            combined = fall_back(round, problem, self.assumed_malicious())
            result = _of_combined(combined, round, state.rule)
            return self._step(state, round, server, result, state.before)
        stages = self._prepared(state, round, server)
        rows = stages[-1].made.round if stages else round
        given = self.rule.aggregate(state.rule, rows, server)
        result = _of_clients(given, stages, round)
        return self._step(state, round, server, result, tuple(stage.made.state for stage in stages))

    def _prepared(self, state: PipelineState, round: Round, server: Server) -> list[_Stage]:
        stages: list[_Stage] = []
        for part, part_state in zip(self.before, state.before, strict=True):
            made = part.prepare(part_state, round, server)
            stages.append(_Stage(part, round, made))
            round = made.round
        return stages

    def _step(
        self,
        state: PipelineState,
        round: Round,
        server: Server,
        result: Aggregate[Any],
        before: tuple[Any, ...],
    ) -> Aggregate[PipelineState]:
        """Let the post-aggregators make a step of the result, unless the model stays."""
        if not self.after or torch.equal(result.params, round.global_params):
            next_state = PipelineState(before, result.state, state.after)
            return replace(result, state=next_state)
        update, weights = result.params - round.global_params, result.weights
        states: list[Any] = []
        report = dict(result.report)
        for part, old in zip(self.after, state.after, strict=True):
            step = part.step(old, update, round, server)
            update = step.update
            weights = None if weights is None else step.factor * weights
            states.append(step.state)
            report |= _named(part.name, step.report)
        return replace(
            result,
            params=round.global_params + update,
            state=PipelineState(before, result.state, tuple(states)),
            weights=weights,
            report=report,
        )


def _of_rows(problem: str, num_clients: int, rows: int) -> str:
    return problem if rows == num_clients else f"{problem} ({num_clients} clients make {rows} rows)"


def _of_combined(combined: Combined, round: Round, state: Any) -> Aggregate[Any]:
    """Return a fallback as a result, with the rule's state as it was."""
    update = combined.update
    params = round.global_params if update is None else round.global_params + update
    return Aggregate(params, state, combined.weights, combined.evidence, combined.report)


def _of_clients(given: Aggregate[Any], stages: list[_Stage], round: Round) -> Aggregate[Any]:
    """Return the rule's result with what it says of rows said of clients."""
    changed = any(stage.made.round is not stage.given for stage in stages)
    weights = given.weights
    evidence = {f"mixed.{key}" if changed else key: v for key, v in given.evidence.items()}
    report = dict(given.report)
    for stage in reversed(stages):
        weights = stage.made.weights_of_clients(weights)
        evidence = {
            **_named(stage.part.name, stage.made.evidence),
            **_of_those_before(evidence, stage),
        }
        report = {**_named(stage.part.name, stage.made.report), **report}
    if weights is not None:
        weights = weights.to(round.updates.dtype)
    reasons = given.reasons if _rows_are_clients(stages) else ()
    return replace(given, weights=weights, evidence=evidence, report=report, reasons=reasons)


def _rows_are_clients(stages: list[_Stage]) -> bool:
    """Say whether row j is client j still, scaled at most: then reasons are about clients."""
    return all(stage.made.origin is not None and stage.made.origin.ndim == 1 for stage in stages)


def _of_those_before(evidence: Mapping[str, Tensor], stage: _Stage) -> dict[str, Tensor]:
    about_clients = {k: stage.made.figures_of_clients(v, stage.given) for k, v in evidence.items()}
    return {key: values for key, values in about_clients.items() if values is not None}


def _named(part: str, values: Mapping[str, Any]) -> dict[str, Any]:
    return {f"{part}.{key}": value for key, value in values.items()}
