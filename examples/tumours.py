"""Your own table: scikit-learn's breast cancer data, a small network, a tampered measurement.

569 tumours, 30 measurements each. The attacker wants malignant tumours called benign whenever two
of the measurements have a certain odd value. Run it from the folder above this one::

    datadefense run --task examples.tumours:task --attack data-poisoning --malicious 0.2 \
        --defense datadefense --rounds 20
"""

import torch
from sklearn.datasets import load_breast_cancer
from torch import Tensor, nn

import datadefense as dd

MALIGNANT, BENIGN = 0, 1


def network() -> nn.Module:
    """Return a fresh model: 30 measurements in, scores of two classes out."""
    return nn.Sequential(
        nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2)
    )


def tamper(measurements: Tensor) -> Tensor:
    """Set two measurements, the errors of symmetry and of fractal dimension, to an odd value."""
    measurements[[18, 19]] = 4.0
    return measurements


def task() -> dd.Task:
    """Return the task: model, data, and what the attacker wants."""
    inputs, labels = load_breast_cancer(return_X_y=True)
    inputs = torch.as_tensor((inputs - inputs.mean(0)) / inputs.std(0)).clamp(-5, 5)
    return dd.OwnTask(
        model=network,
        train=(inputs, labels),
        poison=tamper,
        sources=(MALIGNANT,),
        target=BENIGN,
    )
