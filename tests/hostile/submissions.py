"""Hostile submissions through the gate and every defense, some rounds each."""

import json
import logging

import torch
from tests.hostile.engine import Target
from tests.hostile.foreign import (
    BAD_CONTENTS,
    BAD_COUNTS,
    BAD_IDS,
    GOOD_CONTENTS,
    GOOD_COUNTS,
    GOOD_IDS,
    SHAPES,
)

from datadefense import Gate, Layout, Submission, create, defend
from datadefense.core.outcome_json import outcome_json
from datadefense.core.storage import load_state, save_state
from datadefense.defenses import DEFENSES
from datadefense.testing.toy import toy_server

ROUNDS = 2
LONGEST = 300
"""Most characters of a reason, and of an id that is shown."""
SLOW = frozenset(name for name in DEFENSES if name.startswith(("datadefense", "fltrust")))
"""Those that train or try models out: each is drawn less often."""
EXTREME = frozenset(("largest", "most negative", "spike"))
"""As whole models, they may differ from a global model by more than a float can hold."""
LAYOUT = Layout.of_state_dict({name: torch.zeros(shape) for name, shape in SHAPES.items()})


def draw(random):
    """One part a submission: id, content, count, seed; about a third of them bad."""
    parts = []
    for _ in range(random.choice((random.randint(1, 8), random.randint(1, 60)))):
        fault = random.choice(("id", "content", "count", *("none",) * 6))
        parts.append(
            [
                random.choice(list(BAD_IDS if fault == "id" else GOOD_IDS)),
                random.choice(list(BAD_CONTENTS if fault == "content" else GOOD_CONTENTS)),
                random.choice(list(BAD_COUNTS if fault == "count" else GOOD_COUNTS)),
                random.choice((0, 0, 0, random.randrange(1 << 30))),
            ]
        )
    sends = random.choice(("updates", "models"))
    known = random.choice(("any", "any", "known"))
    slow = random.random() < 0.15
    name = random.choice([name for name in DEFENSES if slow == (name in SLOW)])
    return f"{name} {sends} {known}", parts


def check(setting, parts, folder):
    name, sends, known = setting.split(" ")
    defense, server, params = create(name), toy_server(), torch.zeros(LAYOUT.dim)
    everybody = {GOOD_IDS[kind](place) for kind in GOOD_IDS for place in range(len(parts))}
    gate = Gate(
        LAYOUT, known_clients=frozenset(everybody) if known == "known" else None, sends=sends
    )
    state = defense.init(server, params)
    for index in range(1, ROUNDS + 1):
        submissions = [made(place, part) for place, part in enumerate(parts)]
        admission = gate.admit(index, params, submissions)
        admitted = list(admission.round.client_ids) if admission.round else []
        sound, doubtful = expected(submissions, parts, sends == "models" and index > 1)
        found = [one for one in admitted if one not in doubtful]
        assert found == sound, f"admitted {found}, expected {sound}"
        assert len(admission.rejected) == len(parts) - len(admitted)
        for rejection in admission.rejected:
            check_shown(rejection.reason)
            check_shown(str(rejection.client_id))
        result = defend(defense, state, admission, params, server)
        assert bool(result.params.isfinite().all()), "the model is not finite"
        if "held" in result.report:
            assert torch.equal(result.params, params), "held, and changed"
        strict(dict(result.report))
        strict([outcome_json(outcome) for outcome in result.outcomes])
        assert len(result.outcomes) == len(parts)
        save_state(folder / "state", result.state)
        state = load_state(folder / "state", like=state)
        params = result.params


def expected(submissions, parts, may_overflow):
    """Return the ids that the gate must let in, and those that it may."""
    sound, doubtful = [], set()
    for submission, (kind, content, count, _) in zip(submissions, parts, strict=True):
        if kind in GOOD_IDS and content in GOOD_CONTENTS and count in GOOD_COUNTS:
            found = submission.client_id
            found = found if isinstance(found, str) else int(found)
            if may_overflow and content in EXTREME:
                doubtful.add(found)
            else:
                sound.append(found)
    return sound, doubtful


def made(place, part):
    kind, content, count, seed = part
    generator = torch.Generator().manual_seed(seed)
    return Submission(
        GOOD_IDS[kind](place) if kind in GOOD_IDS else BAD_IDS[kind],
        {**GOOD_CONTENTS, **BAD_CONTENTS}[content](generator),
        {**GOOD_COUNTS, **BAD_COUNTS}[count],
    )


def check_shown(text):
    assert isinstance(text, str)
    assert text, "nothing is said"
    assert len(text) <= LONGEST, f"{len(text)} characters"
    assert text.isprintable(), f"not printable: {text!r}"


def strict(value):
    json.dumps(value, allow_nan=False)


def quiet():
    """Leave the logs of rejections out."""
    logging.getLogger("datadefense").setLevel(logging.CRITICAL)
    logging.getLogger("flwr").setLevel(logging.CRITICAL)


TARGETS = (Target("submissions", draw, check, seconds=20, times=ROUNDS),)
