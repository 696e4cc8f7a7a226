"""docs/conformance.md: what it says that our rules give, they give."""

import re
from pathlib import Path

import pytest
import torch
from sklearn.cluster import DBSCAN
from tests import oracles

from datadefense import Round, Server
from datadefense.defenses import DEFENSES, create

PAGE = Path(__file__).parents[2] / "docs" / "conformance.md"
FLAME = [[0.0, -8.0], [1.0, 0.0], [2.0, 0.0], [4.0, 0.0]]
LAST = [[1.0, 0.0], [0.0, 1.0], [0.0, -1.0]]
LINE = [[1.0], [2.0], [3.0], [4.0], [100.0]]
CLAIMS = [100, 100, 100, 100, 10_000]
SIGNS = [[1.0] * count + [-1.0] * (10 - count) for count in (9, 8, 7, 2)]
CASES = {
    "flame": ({"noise_multiplier": 0.0, "space": "updates"}, [FLAME], None, None),
    "foolsgold": ({}, [[[3.0, 0.0], [3.0, 0.0], [0.0, 3.0]], LAST], None, None),
    "rlr": ({}, [[[1.0], [1.0], [1.0], [1.0], [-1.0]]], None, None),
    "dnc": ({}, [[[0.0], [1.0], [2.0], [9.0]]], None, None),
    "alignins": (
        {},
        [[[1.0, 0.1], [1.0, 0.2], [2.0, 0.6], [-1.0, 0.3], [1.0, 0.15]]],
        [1, 1, 2, 1, 1],
        [1.0, 0.0],
    ),
    "centered-clipping": ({}, [[[1.0], [2.0], [3.0], [100.0]]], None, None),
    "multi-metrics": ({}, [[[1.0, 0.0], [2.0, 0.0], [9.0, 0.0]]], None, None),
    "weighted-median": ({}, [LINE], CLAIMS, None),
    "weighted-trimmed-mean": ({}, [LINE], CLAIMS, None),
    "signguard": ({"block_fraction": 1.0}, [SIGNS], None, None),
    "caf": ({}, [[[0.0], [1.0], [2.0], [100.0]]], None, None),
}


def flame_by_the_wrong_norms():
    """The i-th accepted client is cut by the norm of client i."""
    bound = oracles.median([oracles.norm(row) for row in FLAME])
    factors = [min(1.0, bound / oracles.norm(row)) for row in FLAME[:3]]
    cut = [[f * x for x in row] for f, row in zip(factors, FLAME[1:], strict=True)]
    return oracles.mean_of(cut)


def clusters_of_dbscan():
    shares = [[row.count(1.0) / 10, 0.0, row.count(-1.0) / 10] for row in SIGNS]
    tops = [max(column) or 1.0 for column in oracles.columns(shares)]
    features = [[x / top for x, top in zip(row, tops, strict=True)] for row in shares]
    return [float(DBSCAN(eps=0.05, min_samples=3).fit_predict(features).max() + 1)]


ELSEWHERE = {
    "flame": [flame_by_the_wrong_norms(), oracles.mean_of(FLAME[1:])],
    "foolsgold": [oracles.mean_of(LAST, oracles.foolsgold_rates(LAST))],
    "rlr": [oracles.rlr([[1.0]] * 4 + [[-1.0]], [1] * 5, 4)],
    "centered-clipping": [oracles.centered_clipping([[[1.0], [2.0], [3.0], [100.0]]], 100, 1)[0]],
    "weighted-median": [
        [oracles.weighted_median([x for (x,) in LINE], [c / sum(CLAIMS) for c in CLAIMS])]
    ],
    "weighted-trimmed-mean": [oracles.mean_of(LINE, CLAIMS)],
    "signguard": [clusters_of_dbscan()],
}


def rows_of_the_page():
    """Return by name the cell "ours" and the numbers in bold of the last cell."""
    found = {}
    for line in PAGE.read_text().splitlines():
        if line.startswith("| `"):
            first, *_, ours, elsewhere = (cell.strip() for cell in line.strip("|").split(" | "))
            found[re.match(r"`([\w-]+)`", first)[1]] = (
                numbers(ours),
                [numbers(text) for text in re.findall(r"\*\*(.+?)\*\*", elsewhere)],
            )
    return found


def numbers(text):
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]


@pytest.mark.parametrize("name", CASES)
def test_ours(name):
    settings, matrices, counts, model = CASES[name]
    params = torch.tensor(model or [0.0] * len(matrices[0][0]))
    defense, server = create(name, settings), Server()
    state = defense.init(server, params)
    for index, matrix in enumerate(matrices):
        clients = len(matrix)
        round = Round(
            index + 1,
            params,
            torch.tensor(matrix),
            torch.tensor(counts or [1] * clients),
            tuple("abcdefghij"[:clients]),
        )
        result = defense.aggregate(state, round, server)
        state = result.state
    said, _ = rows_of_the_page()[name]
    assert (result.params - params).tolist() == pytest.approx(said, abs=1e-5)


@pytest.mark.parametrize("name", CASES)
def test_elsewhere(name):
    _, bold = rows_of_the_page()[name]
    assert bold == [pytest.approx(values, abs=1e-4) for values in ELSEWHERE.get(name, [])]


def test_every_row_is_of_a_defense_and_computed():
    assert set(rows_of_the_page()) == set(CASES) <= set(DEFENSES)
