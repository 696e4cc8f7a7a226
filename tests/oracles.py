"""Every rule again, slow and obvious: Python floats and loops, straight from its definition."""

import math


def mean(values, weights=None):
    weights = weights or [1.0] * len(values)
    return sum(w * v for w, v in zip(weights, values, strict=True)) / sum(weights)


def columns(rows):
    return [list(column) for column in zip(*rows, strict=True)]


def mean_of(rows, weights=None):
    return [mean(column, weights) for column in columns(rows)]


def norm(row):
    return math.sqrt(sum(x * x for x in row))


def squared_distance(a, b):
    return sum((x - y) ** 2 for x, y in zip(a, b, strict=True))


def krum_scores(rows, f):
    scores = []
    for i, row in enumerate(rows):
        others = sorted(squared_distance(row, other) for j, other in enumerate(rows) if j != i)
        scores.append(sum(others[: max(1, len(rows) - f - 2)]))
    return scores


def first_lowest(scores):
    return min(range(len(scores)), key=lambda i: (scores[i], i))


def krum(rows, f):
    return rows[first_lowest(krum_scores(rows, f))]


def multi_krum_chosen(rows, f):
    scores = krum_scores(rows, f)
    return sorted(range(len(rows)), key=lambda i: (scores[i], i))[: len(rows) - f]


def median(values):
    ordered = sorted(values)
    half = len(ordered) // 2
    return ordered[half] if len(ordered) % 2 else (ordered[half - 1] + ordered[half]) / 2


def median_of(rows):
    return [median(column) for column in columns(rows)]


def trimmed_mean_of(rows, f):
    return [mean(sorted(column)[f : len(column) - f]) for column in columns(rows)]


def bulyan_chosen(rows, f):
    left = list(range(len(rows)))
    chosen = []
    while len(chosen) < len(rows) - 2 * f:
        scores = krum_scores([rows[i] for i in left], f)
        chosen.append(left.pop(first_lowest(scores)))
    return chosen


def nearest_to_median(values, count):
    middle = median(values)
    return sorted(values, key=lambda v: (abs(v - middle), v))[:count]


def bulyan(rows, f):
    chosen = [rows[i] for i in bulyan_chosen(rows, f)]
    count = len(chosen) - 2 * f
    return [mean(nearest_to_median(column, count)) for column in columns(chosen)]


def medoid_start(rows, shares):
    """Weights of one iteration at the medoid, distances below their median counting as it."""
    distances = [[math.sqrt(squared_distance(a, b)) for b in rows] for a in rows]
    sums = [sum(s * d for s, d in zip(shares, row, strict=True)) for row in distances]
    near = distances[first_lowest(sums)]
    least = max(sorted(near)[(len(near) - 1) // 2], 1e-300)
    return [share / max(least, d) for share, d in zip(shares, near, strict=True)]


def weiszfeld(rows, shares, iterations, smoothing):
    point = mean_of(rows, medoid_start(rows, shares))
    for _ in range(iterations):
        weights = [
            share / max(smoothing, math.sqrt(squared_distance(row, point)))
            for share, row in zip(shares, rows, strict=True)
        ]
        point = mean_of(rows, weights)
    return point


def clipped(row, bound):
    length = norm(row)
    return [x * min(1.0, bound / length) if length else x for x in row]


def ndc(rows, counts, bound):
    return mean_of([clipped(row, bound) for row in rows], counts)


def sparsefed(rounds, bound, momentum, count):
    """Apply several rounds; return the total update, the momentum and the error."""
    dim = len(rounds[0][0])
    total, velocity, error = [0.0] * dim, [0.0] * dim, [0.0] * dim
    for rows in rounds:
        update = mean_of([clipped(row, bound) for row in rows])
        for i in range(dim):
            velocity[i] = momentum * velocity[i] + update[i]
            error[i] += velocity[i]
        for i in sorted(range(dim), key=lambda i: (-abs(error[i]), i))[:count]:
            total[i] += error[i]
            error[i] = velocity[i] = 0.0
    return total, velocity, error


def fltrust(rows, own):
    def dot(a, b):
        return sum(x * y for x, y in zip(a, b, strict=True))

    trust = [
        max(0.0, dot(row, own) / (norm(row) * norm(own))) if norm(row) else 0.0 for row in rows
    ]
    total = [0.0] * len(own)
    for row, share in zip(rows, trust, strict=True):
        if share > 0:
            for i, x in enumerate(row):
                total[i] += share * norm(own) / norm(row) * x
    return [x / sum(trust) for x in total]
