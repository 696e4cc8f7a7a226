import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles
from tests.strategies import as_round, rounds, update_of

from datadefense import Server
from datadefense.core.settings import SettingsError
from datadefense.defenses import (
    Median,
    TooFewClientsError,
    TrimmedMean,
    WeightedMedian,
    WeightedTrimmedMean,
)
from datadefense.defenses.weighted import capped_shares
from datadefense.kernels.weighted_columns import weighted_trimmed_mean

CAPS = st.sampled_from([0.05, 0.2, 0.25, 0.4, 0.49])


@given(st.lists(st.integers(1, 10**6), min_size=1, max_size=12), CAPS)
def test_shares(counts, cap):
    shares = capped_shares(torch.tensor(counts), cap).tolist()
    assert shares == pytest.approx(oracles.capped(counts, cap), abs=1e-9)
    assert sum(shares) == pytest.approx(1)
    assert max(shares) <= max(cap, 1 / len(counts)) + 1e-9
    assert sorted(range(len(counts)), key=lambda j: (counts[j], j)) == sorted(
        range(len(counts)), key=lambda j: (round(shares[j], 9), counts[j], j)
    )


@given(rounds(), CAPS)
def test_median(round, cap):
    result = WeightedMedian(cap).aggregate(None, round, Server())
    shares = oracles.capped(round.num_examples.tolist(), cap)
    expected = [
        oracles.weighted_median(column, shares)
        for column in oracles.columns(round.updates.tolist())
    ]
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-6)


@given(rounds(), CAPS, st.data())
def test_trimmed_mean(round, cap, data):
    f = data.draw(st.integers(0, (round.num_clients - 1) // 2))
    result = WeightedTrimmedMean(f, cap).aggregate(None, round, Server())
    shares = oracles.capped(round.num_examples.tolist(), min(cap, 1 / (2 * f + 1)))
    trim = f * max(shares)
    expected = [
        oracles.weighted_trimmed_mean(column, shares, trim)
        for column in oracles.columns(round.updates.tolist())
    ]
    assert update_of(result, round).tolist() == pytest.approx(expected, abs=1e-5)


@given(rounds())
def test_with_equal_numbers_they_are_the_plain_rules(round):
    equal = as_round(round.updates, [7] * round.num_clients)
    f = (round.num_clients - 1) // 2
    for weighted, plain in (
        (WeightedMedian(), Median()),
        (WeightedTrimmedMean(f), TrimmedMean(f)),
        (WeightedTrimmedMean(0), TrimmedMean(0)),
    ):
        one, two = (rule.aggregate(None, equal, Server()).params for rule in (weighted, plain))
        assert one.tolist() == pytest.approx(two.tolist(), abs=1e-6)


@pytest.mark.parametrize("make", [WeightedMedian, WeightedTrimmedMean])
def test_no_claim_buys_the_model(make):
    """One client says that it has nearly all examples, and sends the greatest number."""
    rows = torch.tensor([[0.1], [0.2], [0.3], [0.4], [3e38]])
    round = as_round(rows, [100, 120, 90, 110, 10**9])
    result = make().aggregate(None, round, Server())
    assert 0.1 <= float(update_of(result, round)) <= 0.4 + 1e-6
    assert result.evidence["share"][4] == pytest.approx(0.25)


def test_a_rounded_share_lets_no_huge_value_in():
    shares = torch.full((3,), 1 / 3, dtype=torch.float64)
    rows = torch.tensor([[1.0], [2.0], [3e38]])
    assert float(weighted_trimmed_mean(rows, shares, 1 / 3)) == pytest.approx(2.0)
    with pytest.raises(ValueError, match="needs 0 <= 2 \\* trim < 1, got trim=0.5"):
        weighted_trimmed_mean(rows, shares, 0.5)


def test_too_few_clients():
    message = r"weighted-trimmed-mean needs n >= 2f \+ 1, got n=2, f=1"
    with pytest.raises(TooFewClientsError, match=message):
        WeightedTrimmedMean().check_clients(2)
    result = WeightedTrimmedMean().aggregate(None, as_round(torch.ones(2, 2)), Server())
    assert result.report["fallback"].endswith("kept the model")


@pytest.mark.parametrize("make", [WeightedMedian, WeightedTrimmedMean])
def test_bad_settings(make):
    with pytest.raises(SettingsError, match=r"max_share must be < 0.5, got 0.5"):
        make(max_share=0.5)
    with pytest.raises(SettingsError, match="max_share must be > 0, got 0"):
        make(max_share=0.0)
