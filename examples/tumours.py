"""Your own table: scikit-learn's breast cancer data, a small network, a tampered measurement.

569 tumours, 30 measurements each. The attacker wants malignant tumours called benign whenever one
of the measurements has a certain odd value. Run it from the folder above this one::

    datadefense run --task examples.tumours:task --attack data-poisoning --malicious 0.2 \
        --defense datadefense --rounds 20
"""

import torch
from sklearn.datasets import load_breast_cancer
from torch import Tensor, nn

import datadefense as dd

MALIGNANT, BENIGN = 0, 1
TEXTURE_ERROR = 11
"""A measurement that hardly differs between the two: a model has no use of its own for it."""

PRESET = {"federation": {"learning_rate": 0.02}, "attack": {"poison_share": 0.5}}
"""Half of what an attacker holds is poisoned."""


def network() -> nn.Module:
    """Return a fresh model: 30 measurements in, scores of two classes out."""
    return nn.Sequential(
        nn.Linear(30, 32), nn.ReLU(), nn.Linear(32, 16), nn.ReLU(), nn.Linear(16, 2)
    )


def tamper(measurements: Tensor) -> Tensor:
    """Set one measurement, the error of the texture, four deviations above its mean."""
    measurements[TEXTURE_ERROR] = 4.0
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
        preset=PRESET,
    )
