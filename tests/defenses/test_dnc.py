import math

import pytest
import torch
from hypothesis import assume, given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import Dnc, TooFewClientsError
from datadefense.defenses.dnc import outlier_scores


@given(rounds(min_clients=3), st.data())
def test_the_twin(round, data):
    f = data.draw(st.integers(0, (round.num_clients - 1) // 2))
    rows = round.updates.tolist()
    result = Dnc(f).aggregate(None, round, Server())
    values = torch.linalg.svdvals(round.updates.double() - round.updates.double().mean(0))
    top, second = values[0], values[1] if len(values) > 1 else 0.0
    assume(top > 1e-6)
    assume(second < 0.99 * top)
    scores = oracles.dnc_scores(rows)
    shares = [score / sum(scores) for score in scores]
    found = outlier_scores(round.updates.double())
    assert found.tolist() == pytest.approx(shares, abs=1e-6)
    ordered = sorted(shares)
    cut = len(rows) - f
    assume(f == 0 or ordered[cut] - ordered[cut - 1] > 1e-5)
    kept = [row for row, share in zip(rows, shares, strict=True) if f == 0 or share < ordered[cut]]
    expected = oracles.mean_of(kept)
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


def test_it_leaves_out_who_is_far_along_the_main_direction():
    rows = torch.randn(10, 500, generator=torch.Generator().manual_seed(0))
    rows[4] += 3
    result = Dnc().aggregate(None, as_round(rows), Server())
    assert result.weights[4] == 0
    assert result.weights.sum() == pytest.approx(1)
    assert str(result.reasons[4]).startswith("has 0.")
    assert result.reasons[4].value > result.reasons[4].limit


def test_coordinates_are_drawn_anew_and_the_same_again():
    rows = torch.randn(9, 2000, generator=torch.Generator().manual_seed(0))
    defense = Dnc(num_malicious=2, coordinates=20)
    chosen = [
        (defense.aggregate(None, as_round(rows, index=index), Server(seed=seed)).weights > 0)
        for index, seed in ((1, 0), (1, 0), (2, 0), (3, 0), (1, 1), (1, 2))
    ]
    assert torch.equal(chosen[0], chosen[1])
    assert any(not torch.equal(chosen[0], other) for other in chosen[2:])


def test_more_iterations_leave_out_more_up_to_everybody():
    rows = torch.randn(5, 400, generator=torch.Generator().manual_seed(0))
    kept = [
        Dnc(1, iterations, coordinates=3).aggregate(None, as_round(rows), Server()).report["kept"]
        for iterations in (1, 3, 60)
    ]
    assert kept[0] == 4
    assert kept == sorted(kept, reverse=True)
    assert kept[-1] == 0
    last = Dnc(1, 60, coordinates=3).aggregate(None, as_round(rows), Server())
    assert torch.equal(last.params, as_round(rows).global_params)
    assert last.report["fallback"].endswith("kept the model")


def test_of_two_huge_updates_the_greater_hides_the_smaller():
    """Why it does not promise to be bounded: projections on the first leave the second unseen."""
    rows = 0.1 * torch.randn(11, 200, generator=torch.Generator().manual_seed(0))
    rows[[3, 5]] = 0
    rows[3, 0], rows[5, 1] = 1e30, 1e12
    result = Dnc(2).aggregate(None, as_round(rows), Server())
    assert result.weights[3] == 0
    assert result.weights[5] > 0


def test_the_factor_rounds_up():
    rows = torch.randn(9, 50, generator=torch.Generator().manual_seed(0))
    result = Dnc(2, filter_factor=1.2).aggregate(None, as_round(rows), Server())
    assert result.report["kept"] == 9 - math.ceil(2.4)


def test_equal_updates_have_no_main_direction():
    assert outlier_scores(torch.full((5, 3), 0.1, dtype=torch.float64)) is None
    assert outlier_scores(torch.zeros(5, 3, dtype=torch.float64)) is None


def test_too_few_clients():
    with pytest.raises(TooFewClientsError, match=r"dnc needs n >= 2f \+ 1, got n=4, f=2"):
        Dnc(2).check_clients(4)
    result = Dnc(2).aggregate(None, as_round(torch.ones(4, 2)), Server())
    assert result.report["fallback"] == "dnc needs n >= 2f + 1, got n=4, f=2: kept the model"


def test_bad_settings():
    for name, value in (("iterations", 0), ("coordinates", 0), ("filter_factor", 2.5)):
        with pytest.raises(SettingsError, match=f"{name} must be"):
            Dnc(**{name: value})
