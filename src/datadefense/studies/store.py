"""The result store: one line of JSON a run, only ever added to, small enough to commit."""

import dataclasses
import fcntl
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from datadefense.core.json_file import built, read_lines, to_json
from datadefense.runs.config import Experiment, experiment_of
from datadefense.runs.summary import Summary, detector_hits
from datadefense.simulation.rounds import RoundRecord


@dataclass(frozen=True, slots=True)
class Result:
    """One finished run: its key, what its configuration changes, its figures and its curves.

    ``curves`` maps a name to pairs of round and value; see `curves_of`.
    """

    key: str
    config: Mapping[str, Any]
    summary: Summary
    curves: Mapping[str, Sequence[Sequence[float]]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class _Line:
    """A result as JSON has it."""

    key: str
    config: dict[str, Any]
    summary: dict[str, Any]
    curves: dict[str, list[list[float]]] = field(default_factory=dict)


def result_of(
    experiment: Experiment,
    summary: Summary,
    records: Sequence[RoundRecord],
    poisoned: frozenset[str],
) -> Result:
    """Return what is kept of a run."""
    curves = curves_of(records, poisoned)
    return Result(experiment.key(), experiment.changes(), summary, curves)


def curves_of(
    records: Sequence[RoundRecord], poisoned: frozenset[str]
) -> dict[str, list[tuple[int, float]]]:
    """Return the curves of the paper's figures as pairs of round and value.

    The scores (``ma_percent``, ``asr_percent``) of evaluated rounds; ``hits_percent``, the share of
    the poisoned examples that the detector marked; ``gap_min``, ``gap_mean`` and ``gap_max``, an
    attacker's weight less that of each honest client, over the pairs of an attacked round.
    """
    curves: dict[str, list[tuple[int, float]]] = {}

    def put(name: str, record: RoundRecord, value: float | None) -> None:
        if value is not None:
            curves.setdefault(name, []).append((record.round, float(f"{value:.4g}")))

    for record in records:
        for name, value in record.scores.items():
            put(name, record, value)
        put("hits_percent", record, detector_hits([record], poisoned))
        gaps = _gaps(record)
        if gaps:
            put("gap_min", record, min(gaps))
            put("gap_mean", record, sum(gaps) / len(gaps))
            put("gap_max", record, max(gaps))
    return curves


def _gaps(record: RoundRecord) -> list[float]:
    """Return each attacker's weight less each honest client's."""
    if record.weights is None:
        return []
    weights = record.known_weights()
    malicious = [weights.get(client, 0.0) for client in record.attackers]
    honest = [weight for client, weight in weights.items() if client not in record.attackers]
    return [attacker - client for attacker in malicious for client in honest]


def read_store(path: Path) -> dict[str, Result]:
    """Return the results by key, the last one of each; a last line that was cut off is left out.

    Cut off is a line without its end, as in `append`: what is read is what stays. A key that is not
    that of its configuration, now or at an earlier revision of the code, is an error.
    """
    if not path.exists():
        return {}
    results, _ = read_lines(path, "a result", _result)
    return {result.key: result for result in results}


def _result(values: Any) -> Result:
    """Return the result that a line holds; an exception if it holds none."""
    plain = built(_Line, values)
    result = Result(plain.key, plain.config, built(Summary, plain.summary), plain.curves)
    _check_key(result)
    return result


def _check_key(result: Result) -> None:
    """Raise ValueError if a result has another's key: its figures would be shown as the other's."""
    configured = experiment_of(result.config)
    if result.key not in configured.keys():  # noqa: SIM118 - it is no mapping
        raise ValueError(
            f"its key is {result.key!r}, that of its configuration {configured.key()!r}"
        )


def append(path: Path, result: Result) -> None:
    """Add a result behind the others; a last line that was cut off gives way."""
    path.parent.mkdir(parents=True, exist_ok=True)
    line = to_json(dataclasses.asdict(result)) + "\n"
    with path.open("ab") as store:
        fcntl.flock(store, fcntl.LOCK_EX)
        store.truncate(path.read_bytes().rfind(b"\n") + 1)
        store.write(line.encode())
        store.flush()
        os.fsync(store.fileno())
