"""Rounds for tests, made of columns: one entry a client."""

from datadefense.core.detector import DetectorRecord
from datadefense.core.outcomes import ClientOutcome, Verdict
from datadefense.core.reasons import Reason
from datadefense.simulation.rounds import RoundRecord


def outcome(client, weight=None, evidence=None, reason=None, verdict=None):
    """Return an admitted client's outcome; the verdict follows from weight and reason."""
    if verdict is None and weight is None:
        verdict = Verdict.VOTED if reason is None else Verdict.EXCLUDED
    elif verdict is None and weight == 0:
        verdict, reason = Verdict.EXCLUDED, reason or Reason("no_weight")
    elif verdict is None:
        verdict = Verdict.COUNTED if reason is None else Verdict.REDUCED
    return ClientOutcome(client, verdict, weight, evidence or {}, reason)


def rejection(client, text="NaN"):
    return ClientOutcome(client, Verdict.REJECTED, reason=Reason("rejected", text=text))


def record_of(
    index=1,
    clients=(),
    attackers=(),
    weights=None,
    *,
    evidence=None,
    reasons=None,
    rejected=(),
    ma_percent=None,
    asr_percent=None,
    **fields,
):
    """Return a round of these clients; ``rejected`` are pairs of a client and a text."""
    rows = range(len(clients))
    columns = evidence or {}
    scores = {"ma_percent": ma_percent, "asr_percent": asr_percent}
    admitted = [
        outcome(
            clients[row],
            None if weights is None else weights[row],
            {name: values[row] for name, values in columns.items()},
            None if reasons is None else reasons[row],
            None if weights is None or weights[row] is not None else Verdict.COUNTED,
        )
        for row in rows
    ]
    return RoundRecord(
        round=index,
        outcomes=(*admitted, *(rejection(*pair) for pair in rejected)),
        attackers=list(attackers),
        scores={name: value for name, value in scores.items() if value is not None},
        **fields,
    )


def detector_of(suspicion, marked):
    """Return a detector's record of examples that are called by their places."""
    ids = [str(place) for place in range(len(suspicion))]
    return DetectorRecord(
        dict(zip(ids, suspicion, strict=True)), tuple(ids[place] for place in marked)
    )


def marked_places(result):
    """Return the places in the defense set that a detector marked; its record is by id."""
    ids = list(result.detector.suspicion)
    return [ids.index(one) for one in result.detector.marked]


def suspicions(result):
    """Return what a detector says of each example, in the order of the set."""
    return list(result.detector.suspicion.values())


def said(result):
    """Return all that a result says of its round in plain values."""
    return result.report, list(result.reasons), result.detector, result.theta
