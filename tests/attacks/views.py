"""What attackers are shown of a round, made of a matrix of honest updates; and hostile rounds."""

import math

import torch
from tests.strategies import as_round

from datadefense.attacks.base import Sees
from datadefense.attacks.collusion import View
from datadefense.core.gate import out_of_range

DIM = 600


def view_of(honest, own=None, *, attackers=2, stand_ins=None):
    """Attackers, whose own training gave ``own``, behind the honest clients of a round."""
    honest = torch.as_tensor(honest)
    own = torch.zeros(attackers, honest.shape[1], dtype=honest.dtype) if own is None else own
    round = as_round(torch.cat([honest, own]))
    return View(
        round=round,
        attacks=torch.arange(len(round.updates)) >= len(honest),
        stand_ins=honest[:0] if stand_ins is None else stand_ins,
        first=round.global_params,
        rule=None,
        state=None,
        server=None,
        guess=None,
        own_loss=None,
    )


def guessing_view(stand_ins, own=None, attackers=2):
    """Honest rows are not shown; stand-ins are."""
    unseen = torch.full_like(stand_ins, torch.nan)
    return view_of(unseen, own, attackers=attackers, stand_ins=stand_ins)


def normal(rows, dim=DIM, seed=0, dtype=torch.float32):
    return torch.randn(rows, dim, generator=torch.Generator().manual_seed(seed), dtype=dtype)


HOSTILE = {
    "nobody honest": normal(0),
    "one honest": normal(1),
    "two honest": normal(2),
    "all equal": normal(1).expand(5, -1).clone(),
    "all zero": torch.zeros(5, DIM),
    "opposite": torch.cat([normal(1), -normal(1)]),
    "tiny": 1e-30 * normal(5),
    "huge": 1e37 * normal(5),
    "largest": torch.full((4, DIM), torch.finfo(torch.float32).max) * normal(4).sign(),
    "wide": 1e60 * normal(4, dtype=torch.float64),
    "one not a number": torch.cat([normal(4), torch.full((1, DIM), torch.nan)]),
    "none a number": torch.full((3, DIM), torch.inf),
    "one coordinate": normal(4, dim=1),
}
"""Honest updates, or stand-ins, that are no ordinary ones."""


def assert_stands_all(attack, own=None):
    """Whatever the honest updates and however many attack: something finite is sent by each."""
    shown = Sees.HONEST_UPDATES in attack.sees()
    for name, rows in HOSTILE.items():
        for attackers in (1, 4):
            given = None if own is None else own(attackers, rows)
            view = (view_of if shown else guessing_view)(rows, given, attackers=attackers)
            plot = attack.agree(view)
            assert plot.updates.shape == (attackers, rows.shape[1]), name
            assert plot.updates.dtype == rows.dtype, name
            assert all(out_of_range(row) is None for row in plot.updates), name
            assert all(math.isfinite(value) for value in plot.facts.values()), name
