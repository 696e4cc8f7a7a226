import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tests import oracles

from datadefense.defenses.datadefense.losses import l_c, l_p, margin


@st.composite
def labelled_logits(draw):
    examples, classes = draw(st.integers(1, 5)), draw(st.integers(2, 6))
    cell = st.floats(-6, 6, allow_nan=False)
    row = st.lists(cell, min_size=classes, max_size=classes)
    rows = draw(st.lists(row, min_size=examples, max_size=examples))
    labels = draw(st.lists(st.integers(0, classes - 1), min_size=examples, max_size=examples))
    return rows, labels


@given(labelled_logits())
def test_against_the_softmax(case):
    rows, labels = case
    z, y = torch.tensor(rows, dtype=torch.float64), torch.tensor(labels)
    expected = [oracles.log_odds_and_losses(*one) for one in zip(rows, labels, strict=True)]
    odds, clean, poison = (list(column) for column in zip(*expected, strict=True))
    assert l_c(z, y).tolist() == pytest.approx(clean, rel=1e-9, abs=1e-11)
    assert l_p(z, y).tolist() == pytest.approx(poison, rel=1e-9, abs=1e-11)
    assert margin(z, y).tolist() == pytest.approx(odds, rel=1e-9, abs=1e-11)


@given(labelled_logits())
def test_the_margin_is_the_difference_of_the_losses(case):
    z, y = torch.tensor(case[0], dtype=torch.float64), torch.tensor(case[1])
    assert torch.allclose(margin(z, y), l_p(z, y) - l_c(z, y), atol=1e-12)


def test_two_classes_are_the_logistic_loss():
    z, y = torch.tensor([[0.3, 2.0], [-1.0, 4.0]]), torch.tensor([1, 0])
    gap = torch.tensor([1.7, -5.0])
    softplus = torch.nn.functional.softplus
    assert torch.allclose(l_c(z, y), softplus(-gap))
    assert torch.allclose(l_p(z, y), softplus(gap))
    assert torch.allclose(margin(z, y), gap)


@pytest.mark.parametrize("gap", [17.0, 90.0, 1000.0, 1e30])
@pytest.mark.parametrize("label", [0, 1])
def test_any_gap_is_finite(gap, label):
    """The plain -log(1 - p) is infinite in float32 from a gap of 17 on."""
    z, y = torch.tensor([[gap, 0.0, 0.0]], requires_grad=True), torch.tensor([label])
    for loss, of_sure, of_wrong in ((l_c, 0.0, gap), (l_p, gap, 0.0)):
        value = loss(z, y)
        assert value.item() == pytest.approx((of_sure, of_wrong)[label], rel=1e-6, abs=1.0)
        (slope,) = torch.autograd.grad(value.sum(), z)
        assert slope.isfinite().all()
    (slope,) = torch.autograd.grad(margin(z, y).sum(), z)
    assert slope.isfinite().all()


def test_gradients_are_right():
    z = torch.randn(4, 3, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    y = torch.tensor([0, 2, 1, 1])
    for loss in (l_c, l_p, margin):
        assert torch.autograd.gradcheck(lambda z, loss=loss: loss(z, y), z.requires_grad_())


def test_with_one_class_the_label_is_certain():
    z, y = torch.tensor([[3.0], [-2.0]], requires_grad=True), torch.tensor([0, 0])
    assert l_c(z, y).tolist() == [0, 0]
    assert l_p(z, y).tolist() == margin(z, y).tolist() == [torch.inf, torch.inf]
    for loss in (l_c, l_p):
        (slope,) = torch.autograd.grad(loss(z, y).sum(), z)
        assert slope.isfinite().all()
