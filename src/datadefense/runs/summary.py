"""Summary of a run: what a table shows of it."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from datadefense.core.outcomes import Verdict
from datadefense.runs.baseline import Floor
from datadefense.runs.config import Experiment
from datadefense.simulation.rounds import RoundRecord

LAST = 10
"""Evaluated rounds at the end over which accuracy and success rate are averaged."""


@dataclass(frozen=True, slots=True)
class Summary:
    """The figures of a run; percentages carry their unit in the name.

    ``ma_percent`` and ``asr_percent`` are means over the last 10 evaluated rounds. The floor is the
    success rate of fedavg without any attack over the same rounds; the excess is what is above it;
    ``calm_ma_percent`` is the accuracy of that run, which older summaries do not have. Both are
    measured where the run is: another machine's arithmetic makes another warm start.
    ``attacker_weight_mean`` and ``honest_excluded_percent`` are None for rules without weights.
    ``detector_hits_percent``: share of the defense set's examples of which it is known that they
    are poisoned that a detector marked, mean over rounds; None without a detector or any such.
    ``lifespan_rounds``: rounds after the last attack until the success rate first falls to half of
    what it was; None if it does not within the run, or if the attack never stops. Seconds of a part
    are means over the rounds that have it; those of the attack are a part of training.
    ``evasion_budget``: the largest step towards the backdoor that the defense lets through, mean
    over attacked rounds; None but for attackers who call the defense. ``weakened_rounds``: rounds
    in which the defense said that it lacked what it is good for; older summaries do not have it.
    """

    setup: str
    scale: str
    defense: str
    attack: str
    seed: int
    rounds: int
    ma_percent: float
    asr_percent: float
    asr_floor_percent: float
    excess_asr_percent: float
    peak_asr_percent: float
    final_ma_percent: float
    final_asr_percent: float
    attacker_weight_mean: float | None
    honest_excluded_percent: float | None
    detector_hits_percent: float | None
    lifespan_rounds: int | None
    rejected_clients: int
    seconds_per_round: float
    seconds_training: float
    seconds_attack: float
    seconds_defense: float
    seconds_evaluation: float
    peak_memory_mb: float | None
    calm_ma_percent: float | None = None
    evasion_budget: float | None = None
    weakened_rounds: int | None = None


def summarise(
    experiment: Experiment,
    records: Sequence[RoundRecord],
    floor: Floor,
    poisoned: frozenset[str],
    peak_memory_mb: float | None,
) -> Summary:
    """Return the figures of a run of which at least one round was evaluated.

    Args:
        experiment: its configuration.
        records: its rounds.
        floor: what fedavg scores without any attack.
        poisoned: ids of examples of the defense set of which it is known that they are poisoned.
        peak_memory_mb: most memory that it took, if that is known.
    """
    rates = success_rates(records)
    accuracies = [r.ma_percent for r in records if r.ma_percent is not None]
    attackers, honest = attacker_weights(records), honest_weights(records)
    return Summary(
        setup=experiment.name_of("task"),
        scale=experiment.scale,
        defense=experiment.name_of("defense"),
        attack=experiment.name_of("attack"),
        seed=experiment.seed,
        rounds=records[-1].round,
        ma_percent=tail_mean(accuracies),
        asr_percent=tail_mean(rates),
        asr_floor_percent=floor.asr_percent,
        excess_asr_percent=tail_mean(rates) - floor.asr_percent,
        peak_asr_percent=max(rates),
        final_ma_percent=accuracies[-1],
        final_asr_percent=rates[-1],
        attacker_weight_mean=fmean(attackers) if attackers else None,
        honest_excluded_percent=100 * fmean(w == 0 for w in honest) if honest else None,
        detector_hits_percent=detector_hits(records, poisoned),
        lifespan_rounds=lifespan(records, experiment.schedule.last_attack()),
        rejected_clients=sum(r.count(Verdict.REJECTED) for r in records),
        seconds_per_round=fmean(map(seconds_in_all, records)),
        seconds_training=seconds(records, "training"),
        seconds_attack=seconds(records, "attack"),
        seconds_defense=seconds(records, "defense"),
        seconds_evaluation=seconds(records, "evaluation"),
        peak_memory_mb=peak_memory_mb,
        calm_ma_percent=floor.ma_percent,
        evasion_budget=evasion_budget(records),
        weakened_rounds=sum("weakened" in record.report for record in records),
    )


def tail_mean(values: Sequence[float]) -> float:
    """Return the mean over the last evaluated rounds."""
    return fmean(values[-LAST:])


def success_rates(records: Sequence[RoundRecord]) -> list[float]:
    """Return the attack success rate of each evaluated round."""
    return [record.asr_percent for record in records if record.asr_percent is not None]


def attacker_weights(records: Sequence[RoundRecord]) -> list[float]:
    """Return the weight of each attacker in each round; one that was rejected has none, 0."""
    return [
        record.known_weights().get(attacker, 0.0)
        for record in records
        if record.weights is not None
        for attacker in record.attackers
    ]


def honest_weights(records: Sequence[RoundRecord]) -> list[float]:
    """Return the weight of each honest client in each round."""
    return [
        weight
        for record in records
        if record.weights is not None
        for client, weight in record.known_weights().items()
        if client not in record.attackers
    ]


def detector_hits(records: Sequence[RoundRecord], poisoned: frozenset[str]) -> float | None:
    """Return the mean percentage of the poisoned examples that were marked."""
    marked = [set(record.detector.marked) for record in records if record.detector is not None]
    if not marked or not poisoned:
        return None
    return fmean(100 * len(poisoned & found) / len(poisoned) for found in marked)


def evasion_budget(records: Sequence[RoundRecord]) -> float | None:
    """Return the mean step that attackers who call the defense dared; None if there are none."""
    steps = [r.attack["evasion_budget"] for r in records if "evasion_budget" in r.attack]
    return fmean(steps) if steps else None


def lifespan(records: Sequence[RoundRecord], last_attack: int | None) -> int | None:
    """Return the rounds from the last attack to the first with half its success rate or less."""
    if last_attack is None:
        return None
    rates = {r.round: r.asr_percent for r in records if r.asr_percent is not None}
    before = [rate for index, rate in rates.items() if index <= last_attack]
    if not before:
        return None
    after = [index for index, rate in rates.items() if index > last_attack]
    return next(
        (index - last_attack for index in sorted(after) if rates[index] <= before[-1] / 2), None
    )


def seconds(records: Sequence[RoundRecord], part: str) -> float:
    """Return the mean seconds of a part of a round, over the rounds that have it."""
    times = [record.seconds[part] for record in records if record.seconds.get(part)]
    return fmean(times) if times else 0.0


def seconds_in_all(record: RoundRecord) -> float:
    """Return the seconds that a round took."""
    return sum(record.seconds.get(part, 0.0) for part in ("training", "defense", "evaluation"))
