import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from datadefense.kernels.top import top_mask


@given(st.lists(st.integers(-5, 5), min_size=1, max_size=30), st.data())
def test_against_a_sort(values, data):
    count = data.draw(st.integers(0, len(values)))
    order = sorted(range(len(values)), key=lambda i: (-abs(values[i]), i))
    mask = top_mask(torch.tensor(values, dtype=torch.float32), count)
    assert mask.nonzero().flatten().tolist() == sorted(order[:count])


@pytest.mark.parametrize("count", [-1, 4])
def test_bad_count(count):
    with pytest.raises(ValueError, match=f"got count={count}, dim=3"):
        top_mask(torch.zeros(3), count)
