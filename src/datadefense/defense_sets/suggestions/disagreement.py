r"""Disagreement: inputs that a later model calls something that an earlier one finds absurd.

A backdoor that got in has turned some inputs over. If such inputs are among those that the server
sees (uploads, a log), they are where the model from before and the model from after disagree. The
candidates are those inputs with the later model's label y, ranked by how much more it believes it,

.. math::
    d(x) = \log p_{\mathrm{later}}(y \mid x) - \log p_{\mathrm{earlier}}(y \mid x), \qquad
    y = \arg\max p_{\mathrm{later}}(\cdot \mid x)

This is large only where the later model is sure *and* the earlier one finds the label absurd, which
is what makes an example of a defense set sure poison. The drop of the earlier label's probability
would rank an input high, too, on which the later model merely wavers. What honest clients have put
right since is among the candidates as well: that is spread over the labels, a backdoor is not. Who
sees one label pile up can ask for that label alone.
"""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Shaped
from torch import Tensor

from datadefense.core.examples import Examples
from datadefense.core.settings import SettingsError, check_int
from datadefense.defense_sets.suggestions.candidates import Candidates

Logits = Float[Tensor, "inputs classes"]


def disagreement(
    inputs: Shaped[Tensor, "inputs ..."],
    earlier: Logits,
    later: Logits,
    count: int,
    *,
    sources: Sequence[int] | None = None,
    targets: Sequence[int] | None = None,
) -> Candidates:
    """Return the inputs on which two models disagree most, with the later model's label.

    Args:
        inputs: what the server has seen; labels are not needed.
        earlier: logits of the model from before.
        later: logits of the model from after.
        count: how many at most; fewer if the models disagree on fewer.
        sources: only inputs that the earlier model calls so; None: any.
        targets: only inputs that the later model calls so; None: any.
    """
    check_int("candidates", count, 1)
    for name, logits in (("earlier", earlier), ("later", later)):
        if logits.shape != earlier.shape or len(logits) != len(inputs) or logits.ndim != 2:
            raise SettingsError(
                f"one row of logits an input: {len(inputs)} inputs, earlier "
                f"{list(earlier.shape)}, later {list(later.shape)}"
            )
        if not bool(logits.isfinite().all()):
            raise SettingsError(f"the {name} model's logits must be finite")
    before, after = (logits.double().log_softmax(1) for logits in (earlier, later))
    was, now = before.argmax(1), after.argmax(1)
    differ = was != now
    for labels, wanted in ((was, sources), (now, targets)):
        if wanted is not None:
            differ &= torch.isin(labels, torch.tensor(list(wanted)))
    turned = differ.nonzero().flatten()
    if not len(turned):
        raise SettingsError(
            f"the models agree on all of the {len(inputs)} inputs, or on those that are wanted"
        )
    rise = (after - before).gather(1, now[:, None]).flatten()
    first = rise[turned].sort(descending=True, stable=True).indices[:count]
    rows = turned[first]
    origins = tuple(
        f"{int(was[row])} turned {int(now[row])}, log-probability up {float(rise[row]):.1f}"
        for row in rows.tolist()
    )
    return Candidates(Examples(inputs[rows], now[rows]), origins)
