"""Simulate: a generator of rounds, from the schedule to the new model and its scores."""

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Generic

from jaxtyping import Float
from torch import Tensor

from datadefense.attacks.base import counted
from datadefense.core.defend import defend, model_to_send
from datadefense.core.defense import Defense
from datadefense.core.detector import DetectorRecord
from datadefense.core.foreign import plain_json
from datadefense.core.gate import Gate
from datadefense.core.needs import Need
from datadefense.core.outcomes import ClientOutcome, Verdict
from datadefense.core.round import ClientId, StateT
from datadefense.core.server import Server
from datadefense.schedules.base import Participant
from datadefense.simulation.collusion import Trained, collude
from datadefense.simulation.executor import Workers
from datadefense.simulation.federation import Federation
from datadefense.simulation.jobs import CountJob, SharedBuffers, TrainJob, context_of
from datadefense.simulation.scores import SCORES

TEST_PART = 1000
"""Test examples that one worker judges at a time."""


@dataclass(frozen=True, slots=True)
class RoundRecord:
    """What happened in a round, as plain values; one line of ``rounds.jsonl``.

    Args:
        round: its number.
        outcomes: what became of each update that was sent.
        attackers: ids of the clients that attacked.
        scores: by name (`datadefense.simulation.scores`); empty where the model was not evaluated.
        report: what the defense says of the round.
        detector: what the defense thinks of the server's examples, if it has a detector.
        theta: by how much each piece of evidence lowers a weight, where the defense learns that.
        seconds: training, defense and evaluation pass one after the other; those of the attack are
            what attackers' own training and choosing took, which is a part of training.
        attack: figures of attackers who agree on what they send (``"evasion_budget"``).
    """

    round: int
    outcomes: tuple[ClientOutcome, ...] = ()
    attackers: Sequence[ClientId] = ()
    scores: Mapping[str, float] = field(default_factory=dict)
    report: Mapping[str, Any] = field(default_factory=dict)
    detector: DetectorRecord | None = None
    theta: Mapping[str, float | None] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    attack: Mapping[str, float] = field(default_factory=dict)

    @property
    def ma_percent(self) -> float | None:
        """Main accuracy, which every summary has."""
        return self.scores.get("ma_percent")

    @property
    def asr_percent(self) -> float | None:
        """Attack success rate, which every summary has."""
        return self.scores.get("asr_percent")

    @property
    def clients(self) -> list[ClientId]:
        """Ids of those whom the gate admitted."""
        return [
            outcome.client for outcome in self.outcomes if outcome.verdict is not Verdict.REJECTED
        ]

    @property
    def weights(self) -> list[float | None] | None:
        """Weights of those whom the gate admitted; None of a rule without weights."""
        found = [
            outcome.weight for outcome in self.outcomes if outcome.verdict is not Verdict.REJECTED
        ]
        return None if found and all(weight is None for weight in found) else found

    def count(self, verdict: Verdict) -> int:
        """Return how many updates had a verdict."""
        return sum(outcome.verdict is verdict for outcome in self.outcomes)

    def known_weights(self) -> dict[ClientId, float]:
        """Return the weights by client; none of a rule without weights."""
        return {
            outcome.client: outcome.weight
            for outcome in self.outcomes
            if outcome.weight is not None
        }


@dataclass(frozen=True, slots=True, eq=False)
class Progress(Generic[StateT]):
    """Where a run stands after a round: all that is needed to go on from here.

    ``previous`` is the model that clients were sent in that round.
    """

    params: Float[Tensor, " dim"]
    previous: Float[Tensor, " dim"]
    state: StateT
    round: int
    attack_state: Any = None


def begin(federation: Federation, defense: Defense[StateT], server: Server) -> Progress[StateT]:
    """Return the progress before the first round; what the defense lacks is said here."""
    defense.check_needs(server.offers() | Need.CLIENT_IDENTITY)
    state = defense.init(server, federation.start)
    attack = federation.attack
    remembered = None if attack is None else attack.init(federation.start)
    return Progress(federation.start, federation.start, state, 0, remembered)


def simulate(
    federation: Federation,
    defense: Defense[StateT],
    server: Server,
    pool: Workers,
    *,
    progress: Progress[StateT],
    rounds: int,
    evaluate_every: int = 1,
) -> Iterator[tuple[RoundRecord, Progress[StateT]]]:
    """Run rounds up to number ``rounds``, each yielded when it is done.

    Nothing is printed, logged or stored here; a caller that stops between two rounds and starts
    again from the progress it was given goes on to the very same bits.
    """
    defense.check_clients(federation.clients_per_round)
    server = replace(server, threads=pool.idle_cores())
    while progress.round < rounds:
        index = progress.round + 1
        people = federation.participants(index)
        clock = _Clock()
        sent = model_to_send(
            defense,
            progress.state,
            progress.params,
            server,
            index=index,
            layout=federation.layout,
        )
        trained = _train(federation, pool, replace(progress, params=sent), people, clock)
        facts: dict[str, float] = {}
        if any(person.is_malicious for person in people):
            clock.start()
            facts = collude(
                federation,
                trained,
                sent,
                defense=defense,
                state=progress.state,
                server=server,
            )
            clock.add("training", "attack")
        remembered = _remember(federation, progress, trained)
        admission = Gate(federation.layout).screen(
            index,
            sent,
            trained.updates,
            trained.claims,
            [person.client_id for person in people],
        )
        del trained  # its matrix is large: from here on only the round has it
        clock.start()
        result = defend(defense, progress.state, admission, progress.params, server)
        clock.stop("defense")
        del admission  # its matrix is large: from here on only a defense may keep it
        progress = Progress(result.params, sent, result.state, index, remembered)
        scores: dict[str, float] = {}
        if index % evaluate_every == 0 or index == rounds:
            clock.start()
            scores = evaluate(federation, pool, result.params)
            clock.stop("evaluation")
        record = RoundRecord(
            round=index,
            outcomes=result.outcomes,
            attackers=[person.client_id for person in people if person.is_malicious],
            scores=scores,
            report=result.report,
            detector=result.detector,
            theta=plain_json(result.theta),
            seconds=clock.seconds,
            attack=facts,
        )
        yield record, progress


def evaluate(
    federation: Federation, pool: Workers, params: Float[Tensor, " dim"]
) -> dict[str, float]:
    """Return the scores of a model by name."""
    pool.board.params.copy_(params)
    jobs: list[CountJob] = []
    for score in SCORES:
        total = len(score.examples(federation))
        for start in range(0, total, TEST_PART):
            jobs.append(CountJob(score.name, start, min(start + TEST_PART, total)))
    answers = list(zip(jobs, pool.run(jobs), strict=True))
    return {
        score.name: score.factor
        * sum(answer.count for job, answer in answers if job.score == score.name)
        / len(score.examples(federation))
        for score in SCORES
    }


def _train(
    federation: Federation,
    pool: Workers,
    progress: Progress[Any],
    people: tuple[Participant, ...],
    clock: "_Clock",
) -> Trained:
    """Let everybody train. The matrix is a copy, for a defense to keep."""
    index = progress.round + 1
    claims = [federation.claim(person) for person in people]
    pool.board.params.copy_(progress.params)
    pool.board.previous.copy_(progress.previous)
    jobs = train_jobs(federation, index, people, progress.attack_state)
    jobs.sort(key=lambda job: -counted(claims[job.row]))
    extra = stand_in_jobs(federation, jobs)
    clock.start()
    answers = pool.run([*jobs, *extra])
    clock.stop("training")
    clock.seconds["attack"] = sum(
        answer.seconds
        for answer, job in zip(answers, [*jobs, *extra], strict=True)
        if job.person.is_malicious
    )
    updates, stand_ins = pool.board.rows(len(people)), pool.board.rows(len(extra), len(people))
    return Trained(index, people, claims, updates, stand_ins)


def _remember(federation: Federation, progress: Progress[Any], trained: Trained) -> Any:
    """Return what the attack remembers after a round; the same where nobody attacked.

    What it is shown it may keep: none of it is memory that the next round writes over.
    """
    rows = [row for row, person in enumerate(trained.people) if person.is_malicious]
    attack, state = federation.attack, progress.attack_state
    if attack is None or not rows:
        return state
    jobs = train_jobs(federation, trained.index, tuple(trained.people), state)
    models = SharedBuffers(progress.params, progress.previous, trained.updates)
    context = context_of(jobs[rows[0]], federation, models)
    return attack.remember(state, trained.updates[rows], context)


def train_jobs(
    federation: Federation, index: int, people: tuple[Participant, ...], state: Any = None
) -> list[TrainJob]:
    """Return the jobs of a round, one for each of its slots; attackers get what they remember."""
    attackers = [row for row, person in enumerate(people) if person.is_malicious]
    total = sum(counted(federation.claim(person)) for person in people)
    return [
        TrainJob(
            index=index,
            row=row,
            person=person,
            attacker=(attackers.index(row), len(attackers)) if person.is_malicious else (0, 0),
            num_examples=total,
            has_previous=index > 1,
            state=state if person.is_malicious else None,
        )
        for row, person in enumerate(people)
    ]


def stand_in_jobs(federation: Federation, jobs: Sequence[TrainJob]) -> list[TrainJob]:
    """Return the jobs of the round's first attacker as honest clients, behind all other rows."""
    attackers = [job for job in jobs if job.person.is_malicious]
    first = min(attackers, key=lambda job: job.attacker, default=None)
    if first is None:
        return []
    return [
        replace(first, row=len(jobs) + number, stand_in=number)
        for number in range(federation.stand_ins(len(attackers)))
    ]


class _Clock:
    """Seconds by name."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}
        self._started = 0.0

    def start(self) -> None:
        self._started = time.perf_counter()

    def stop(self, name: str) -> None:
        self.seconds[name] = time.perf_counter() - self._started

    def add(self, *names: str) -> None:
        more = time.perf_counter() - self._started
        for name in names:
            self.seconds[name] += more
