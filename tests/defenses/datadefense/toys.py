"""A backdoor that a linear model can learn, and that a detector can see, in milliseconds.

Three classes of blobs; the last input is the trigger: 0 in clean examples, 3 in poisoned ones,
which are all labelled 0. A model that has not learned the trigger takes those labels for wrong.
"""

from functools import cache

import torch
from torch.nn.functional import cross_entropy

from datadefense import Examples, Round, Server
from datadefense.core.defense_set import DefenseSet
from datadefense.core.rng import generator

WIDTH, CLASSES = 8, 3


def predict(params, inputs):
    weight = params[: WIDTH * CLASSES].view(CLASSES, WIDTH)
    return inputs @ weight.T + params[WIDTH * CLASSES :]


def clean_examples(count, seed):
    draw = generator(seed, "clean")
    labels = torch.arange(count) % CLASSES
    inputs = torch.randn(count, WIDTH, generator=draw)
    inputs[:, :CLASSES] += 4 * torch.nn.functional.one_hot(labels, CLASSES)
    inputs[:, -1] = 0
    return Examples(inputs, labels)


def poisoned_examples(count, seed):
    honest = clean_examples(2 * count + 2, seed + 1000)
    chosen = (honest.labels != 0).nonzero().flatten()[:count]
    inputs = honest.inputs[chosen].clone()
    inputs[:, -1] = 3
    return Examples(inputs, torch.zeros(count).long())


def learn(params, examples, steps=20, rate=0.1):
    for _ in range(steps):
        params = params.detach().requires_grad_()
        loss = cross_entropy(predict(params, examples.inputs), examples.labels)
        params = params - rate * torch.autograd.grad(loss, params)[0]
    return params.detach()


@cache
def defense_set(clean=80, poisoned=20, known=20, seed=0):
    """Clean examples first, the first ``known`` of them known; the encoder sees the inputs."""
    examples = clean_examples(clean, seed).join(poisoned_examples(poisoned, seed))
    return DefenseSet(examples, torch.arange(len(examples)) < known, examples.inputs)


def server(owned=None, seed=0):
    return Server(predict, None, seed, owned or defense_set())


@cache
def released():
    """The model that the clients start from: it knows the task, and not the trigger."""
    start = 0.1 * torch.randn(WIDTH * CLASSES + CLASSES, generator=generator(0, "model"))
    return learn(start, clean_examples(300, 5), steps=100)


@cache
def honest(seed):
    return learn(released(), clean_examples(30, 100 + seed)) - released()


@cache
def attacker(seed, steps=150):
    """Learns the trigger, keeps the task."""
    examples = clean_examples(30, 200 + seed).join(poisoned_examples(30, 300 + seed))
    return learn(released(), examples, steps) - released()


def round_of(updates, index=1, start=None):
    updates = torch.stack(list(updates))
    return Round(
        index,
        released() if start is None else start,
        updates,
        torch.arange(1, len(updates) + 1),
        tuple(range(len(updates))),
    )


def attacked_round(clients=10, attackers=1, index=1):
    """The attackers come first."""
    return round_of(
        [attacker(seed) for seed in range(attackers)]
        + [honest(seed) for seed in range(clients - attackers)],
        index,
    )
