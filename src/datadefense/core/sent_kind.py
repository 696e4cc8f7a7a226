r"""What clients send, whole models or updates: a round that looks like the other kind is refused.

Both are tensors of the same names and shapes, so a wrong choice passes every check of the gate, and
the new model is garbage: whole models added on top of the model, or updates less the model. The two
are told apart by distances. With the global model g and what a client sent, c:

.. math::
    \text{a whole model: } \lVert c - g \rVert^2 < \tfrac12 \lVert c \rVert^2, \qquad
    \text{an update: } \lVert c \rVert^2 < \tfrac12 \lVert c - g \rVert^2.

Where the client's step is at a right angle to the model, as it nearly is in many dimensions, that
holds if the step is shorter than the model. Of longer steps (a first model near zero, very long
training) nothing is said. Only parameters are looked at: running statistics go a long way in a
first round.

More than half of the admitted clients must look like the other kind, and at least two: no single
client can have a round refused. Who has more than half of the clients can, and could as well have
spoilt it. The check errs in one known case: updates that repeat all that the model has learned so
far, as in the second round of a linear model that began at zero. So callers let it be switched off.
"""

from collections.abc import Mapping
from typing import NamedTuple

from torch import Tensor

from datadefense.core.errors import InputError
from datadefense.core.gate import Admission, Sends
from datadefense.core.layout import Layout
from datadefense.core.round import Round
from datadefense.kernels.spill import release

MUCH_LESS = 0.5
"""Quotient of two squared distances below which one counts as much smaller."""
OTHER: Mapping[Sends, Sends] = {"models": "updates", "updates": "models"}
"""The kind that each is not."""
FACTS: Mapping[Sends, str] = {
    "models": "much smaller than its distance from the global model",
    "updates": "much nearer to the global model than to zero",
}
"""What is so of those that look like the other kind."""
FEWEST = 2
"""Fewest clients whose word is taken for the round's."""


class WrongKindError(InputError):
    """Most clients seem to send whole models where updates are expected, or the reverse."""


class Switches(NamedTuple):
    """How a caller is told which kind clients send, and not to check it."""

    kind: str = 'sends="{}"'
    off: str = "check_sends=False"


IN_PYTHON = Switches()


def check_kind(admission: Admission, sends: Sends, switches: Switches = IN_PYTHON) -> int:
    """Raise `WrongKindError` where most clients of a round seem to send the other kind.

    Return how many do, where they are no more than half.
    """
    odd = _odd(admission, sends)
    if problem := _said(odd, admission, sends, switches):
        raise WrongKindError(f"{problem}; if not, switch this check off: {switches.off}")
    return odd


def wrong_kind(admission: Admission, sends: Sends, switches: Switches = IN_PYTHON) -> str | None:
    """Say that most clients of a round seem to send the other kind; None if they do not.

    ``sends`` is that of the gate which admitted them.
    """
    return _said(_odd(admission, sends), admission, sends, switches)


def _odd(admission: Admission, sends: Sends) -> int:
    round = admission.round
    return 0 if round is None else other_kind(round, admission.layout, sends)


def _said(odd: int, admission: Admission, sends: Sends, switches: Switches) -> str | None:
    round = admission.round
    if round is None or odd < FEWEST or 2 * odd <= round.num_clients:
        return None
    real, facts = OTHER[sends], FACTS[sends]
    return (
        f"{odd} of {round.num_clients} clients seem to send {real}, not {sends}: what each of them "
        f"sent is {facts}. If so, say {switches.kind.format(real)}"
    )


def other_kind(round: Round, layout: Layout, sends: Sends) -> int:
    r"""Return how many clients of a round look like the kind that ``sends`` is not.

    A row of the round is u = c - g with ``"models"`` and u = c with ``"updates"``. Norms come from
    :math:`\lVert u \pm g \rVert^2 = \lVert u \rVert^2 \pm 2 u \cdot g + \lVert g \rVert^2`: what
    cancels there is far below the threshold. A row whose square overflows looks like neither.
    """
    sign = 1.0 if sends == "models" else -1.0
    spans = _parameters(layout)
    own = _dot(round.global_params, round.global_params, spans)
    count = 0
    for row in round.updates:
        size = _dot(row, row, spans)
        other = size + sign * 2 * _dot(row, round.global_params, spans) + own
        count += max(other, 0.0) < MUCH_LESS * size
        release(row)
    return count


def _parameters(layout: Layout) -> list[slice]:
    """Return the stretches of the vector that are parameters, as few as there can be."""
    spans: list[slice] = []
    for slot in layout.slots:
        if slot.carried:
            continue
        joins = bool(spans) and spans[-1].stop == slot.start
        spans.append(slice(spans.pop().start if joins else slot.start, slot.stop))
    return spans


def _dot(left: Tensor, right: Tensor, spans: list[slice]) -> float:
    return sum(float(left[span] @ right[span]) for span in spans)
