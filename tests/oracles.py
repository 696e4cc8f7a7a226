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
    near = distances[next(i for i, one in enumerate(sums) if one <= min(sums) * (1 + 1e-6))]
    least = max(sorted(near)[(len(near) - 1) // 2], 1e-300)
    return [share / max(least, d) for share, d in zip(shares, near, strict=True)]


def half_radius(row, rows, shares):
    """How far from a row one must go to have half of the examples."""
    had = 0.0
    for distance, share in sorted(
        (math.sqrt(squared_distance(row, other)), share)
        for other, share in zip(rows, shares, strict=True)
    ):
        had += share
        if had >= 0.5 - 1e-9:
            return distance
    return distance


def middle_start(rows, shares):
    """Weights of one iteration at the row with the least radius, which nothing is nearer than.

    None if no row is 1,000 radii away from another.
    """
    radii = [half_radius(row, rows, shares) for row in rows]
    least = min(radii)
    if max(squared_distance(a, b) for a in rows for b in rows) <= 1e6 * least**2:
        return None
    middle = rows[next(i for i, radius in enumerate(radii) if radius <= least * (1 + 1e-6))]
    distances = [math.sqrt(squared_distance(middle, row)) for row in rows]
    least = max(least, 1e-300)
    return [share / max(least, d) for share, d in zip(shares, distances, strict=True)]


def weiszfeld(rows, shares, iterations, smoothing):
    point = mean_of(rows, middle_start(rows, shares) or medoid_start(rows, shares))
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


def log_odds_and_losses(z, y):
    """The margin, -log p and -log(1 - p) of the label, from the softmax."""
    p = math.exp(z[y]) / sum(math.exp(value) for value in z)
    clean, poison = -math.log(p), -math.log(1 - p)
    return poison - clean, clean, poison


def times(matrix, vector):
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def relu(values):
    return [max(0.0, value) for value in values]


def detector_scores(psi, rows, labels):
    """Eq. 7, one example after the other; psi is W1 ... W4 as lists of rows."""
    W1, W2, W3, W4 = psi
    scores = []
    for h_1, y in zip(rows, labels, strict=True):
        z = times(W2, relu(times(W1, h_1)))
        total = sum(math.exp(value) for value in z)
        pair = [math.exp(value) / total for value in z] + [float(k == y) for k in range(len(z))]
        scores.append(times(W4, relu(times(W3, pair)))[0])
    return scores


def min_max(values):
    low, high = min(values), max(values)
    return [(value - low) / (high - low) for value in values]


def consistency(gamma, known):
    """Eq. 11, pair by pair."""
    return sum(
        gamma[c] - gamma[u]
        for c in range(len(gamma))
        for u in range(len(gamma))
        if known[c] and not known[u]
    )


def relu_importance(scores):
    kept = relu(scores)
    return [score / sum(kept) if sum(kept) > 0 else 0.0 for score in kept]


def most_suspicious(gamma, beta, spared):
    """Places of D_dp: by gamma, first come first, as many as round(beta n) says."""
    count = len(gamma)
    wanted = min(max(1, min(round(beta * count), count - 1)), count) if beta > 0 else 0
    order = sorted(range(count), key=lambda i: (-gamma[i], i))
    return sorted([i for i in order if not spared[i]][:wanted])


def lower_median(values):
    return sorted(values)[(len(values) - 1) // 2]


def middle(values):
    ordered = sorted(values)
    return (ordered[(len(ordered) - 1) // 2] + ordered[len(ordered) // 2]) / 2


def quarter_below(values):
    return sorted(values)[(len(values) - 1) // 4]


def between(value, low, high):
    return max(low, min(high, value))


def penalties(clean, poison, distance, released, usual, *, excuses=(2, 0.25)):
    """``released``: the old model's losses on clean and on poisoned points."""
    released_clean, released_poison = released
    worse = [(loss - released_clean) / (released_clean + 0.1) for loss in clean]
    learned = [(released_poison - loss) / (released_poison + 0.1) for loss in poison]
    allowed = 2 * quarter_below(distance)
    if usual < math.inf:
        allowed = between(allowed, 1.5 * usual, 3 * usual)
    else:
        allowed = max(allowed, lower_median(distance))
    return [
        [
            max(0.0, w - between(quarter_below(worse), 0, excuses[0])),
            max(0.0, d - between(quarter_below(learned), 0, excuses[1])),
            max(0.0, far / allowed - 1) if allowed > 0 else 1e6 * (far > 0),
        ]
        for w, d, far in zip(worse, learned, distance, strict=True)
    ]


def mean_without_rises(losses, released):
    """Mean loss of poisoned points, where each may rise by half of the released mean."""
    most = (mean(released) + 0.1) / 2
    return mean([min(loss, old + most) for loss, old in zip(losses, released, strict=True)])


def poison_share(margins, known):
    """The greatest lower bound over all thresholds, less its error; and that error."""
    clean = [m for m, k in zip(margins, known, strict=True) if k]
    unknown = [m for m, k in zip(margins, known, strict=True) if not k]
    best = None
    for tau in unknown:
        of_clean = sum(m <= tau for m in clean) / len(clean)
        of_unknown = sum(m <= tau for m in unknown) / len(unknown)
        if of_clean > 0.5:
            continue
        variance = sum(
            (share * (1 - share) + 1 / count) / count
            for share, count in ((of_clean, len(clean)), (of_unknown, len(unknown)))
        )
        error = math.sqrt(variance) / (1 - of_clean)
        bound = (of_unknown - of_clean) / (1 - of_clean) - error
        if best is None or bound > best[0]:
            best = bound, error
    part = len(unknown) / len(margins)
    return (0.0, 0.0) if best is None else (max(0.0, best[0]) * part, best[1] * part)


def clip_rows(rows, bound=None):
    lengths = sorted(norm(row) for row in rows)
    bound = lengths[(len(rows) - 1) // 2] if bound is None else bound
    return [shortened(row, bound) for row in rows]


def shortened(row, bound):
    return [x * bound / norm(row) for x in row] if norm(row) > bound else list(row)


def arc_rows(rows, f):
    n = len(rows)
    cut = math.floor(2 * f * (n - f) / n)
    bound = sorted((norm(row) for row in rows), reverse=True)[cut]
    return [shortened(row, bound) for row in rows]


def nnm_rows(rows, f):
    mixed = []
    for i, row in enumerate(rows):
        far = {j: squared_distance(row, other) for j, other in enumerate(rows) if j != i}
        nearest = [i, *sorted(far, key=lambda j: (far[j], j))][: len(rows) - f]
        mixed.append(mean_of([rows[j] for j in nearest]))
    return mixed


def bucket_rows(rows, order, size):
    shuffled = [rows[j] for j in order]
    return [mean_of(shuffled[start : start + size]) for start in range(0, len(rows), size)]


def adam_steps(updates, eta, beta_1, beta_2, tau):
    """The steps of FedAdam for one coordinate, its update given round by round."""
    m, v, steps = 0.0, tau**2, []
    for u in updates:
        m = beta_1 * m + (1 - beta_1) * u
        v = beta_2 * v + (1 - beta_2) * u * u
        steps.append(eta * m / (math.sqrt(v) + tau))
    return steps


def cosine(a, b):
    product = sum(x * y for x, y in zip(a, b, strict=True))
    return product / (norm(a) * norm(b)) if norm(a) and norm(b) else 0.0


def component(start, linked):
    """All that a row is connected with, by a table of who is linked to whom."""
    found, left = {start}, [start]
    while left:
        row = left.pop()
        new = [j for j in range(len(linked)) if linked[row][j] and j not in found]
        found.update(new)
        left += new
    return found


def flame_accepted(rows):
    """The first component with more than half of the rows, over ever greater cosine distances."""
    n = len(rows)
    apart = [
        [1 - cosine(a, b) if i != j else 0.0 for j, b in enumerate(rows)]
        for i, a in enumerate(rows)
    ]
    for reach in sorted({0.0, *(value for row in apart for value in row)}):
        linked = [[value <= reach for value in row] for row in apart]
        for row in range(n):
            if len(found := component(row, linked)) > n // 2:
                return sorted(found)
    raise AssertionError("the last reach connects all")


def flame(rows, accepted):
    bound = median([norm(row) for row in rows])
    return mean_of([clipped(rows[j], bound) for j in accepted])


def foolsgold_rates(histories):
    n = len(histories)
    c = [
        [0.0 if i == j else cosine(histories[i], histories[j]) for j in range(n)] for i in range(n)
    ]
    v = [max(row) + 1e-5 for row in c]
    for i in range(n):
        for j in range(n):
            if v[i] < v[j]:
                c[i][j] *= v[i] / v[j]
    a = [min(1.0, max(0.0, 1 - max(row))) for row in c]
    if max(a) <= 1e-9:
        return [1.0] * n
    rates = []
    for value in a:
        share = min(value / max(a), 0.99)
        rates.append(min(1.0, max(0.0, math.log(share / (1 - share) + 1e-5) + 0.5)))
    return rates


def sign(x):
    return (x > 0) - (x < 0)


def rlr(rows, counts, theta):
    votes = [abs(sum(sign(x) for x in column)) for column in columns(rows)]
    mean_update = mean_of(rows, counts)
    return [m if vote >= theta else -m for m, vote in zip(mean_update, votes, strict=True)]


def dnc_scores(rows, passes=1000):
    """Squared projections on the top singular vector, found by multiplying with the covariance."""
    centre = mean_of(rows)
    x = [[a - b for a, b in zip(row, centre, strict=True)] for row in rows]
    v = max(x, key=norm)
    for _ in range(passes):
        along = [sum(a * b for a, b in zip(row, v, strict=True)) for row in x]
        v = [sum(t * row[i] for t, row in zip(along, x, strict=True)) for i in range(len(v))]
        length = norm(v)
        v = [value / length for value in v]
    return [sum(a * b for a, b in zip(row, v, strict=True)) ** 2 for row in x]


def deviation(values):
    return math.sqrt(mean([(value - mean(values)) ** 2 for value in values]))


def median_z(values):
    spread = deviation(values)
    if spread <= 1e-9:
        return [0.0] * len(values)
    return [abs(value - median(values)) / spread for value in values]


def alignins_measures(rows, model, fraction):
    """TDA and MPSA of each row."""
    count = max(1, int(fraction * len(model) + 1e-9))
    principal = [sign(sum(sign(x) for x in column)) for column in columns(rows)]
    signs = []
    for row in rows:
        largest = sorted(range(len(row)), key=lambda i: (-abs(row[i]), i))[:count]
        signs.append(sum(sign(row[i]) == principal[i] for i in largest) / count)
    return [cosine(row, model) for row in rows], signs


def alignins(rows, counts, model, fraction, limit):
    directions, signs = alignins_measures(rows, model, fraction)
    kept = [
        j
        for j, (one, two) in enumerate(zip(median_z(directions), median_z(signs), strict=True))
        if one < limit and two < limit
    ]
    if not kept:
        return [0.0] * len(model)
    bound = median([norm(rows[j]) for j in kept])
    return mean_of([clipped(rows[j], bound) for j in kept], [counts[j] for j in kept])


def centered_clipping(rounds, radius, iterations):
    """The aggregates of several rounds."""
    center, found = [0.0] * len(rounds[0][0]), []
    for rows in rounds:
        for _ in range(iterations):
            gaps = [[x - c for x, c in zip(row, center, strict=True)] for row in rows]
            limit = median([norm(gap) for gap in gaps]) if radius is None else radius
            step = mean_of([clipped(gap, limit) for gap in gaps])
            center = [c + s for c, s in zip(center, step, strict=True)]
        found.append(center)
    return found


def multi_metrics_table(places):
    return [
        [
            sum((1 - cosine(a, b)) ** 2 for b in places),
            sum(sum(abs(x - y) for x, y in zip(a, b, strict=True)) for b in places),
            sum(abs(norm(a) - norm(b)) for b in places),
        ]
        for a in places
    ]


def solved(matrix, vector):
    """Gauss and Jordan, with pivots."""
    size = len(vector)
    rows = [[*row, value] for row, value in zip(matrix, vector, strict=True)]
    for place in range(size):
        pivot = max(range(place, size), key=lambda i: abs(rows[i][place]))
        rows[place], rows[pivot] = rows[pivot], rows[place]
        rows[place] = [x / rows[place][place] for x in rows[place]]
        for other in range(size):
            if other != place:
                factor = rows[other][place]
                rows[other] = [
                    x - factor * y for x, y in zip(rows[other], rows[place], strict=True)
                ]
    return [row[-1] for row in rows]


def multi_metrics_scores(places):
    table = multi_metrics_table(places)
    # Scaling a column changes no score; without it the matrix cannot be solved in floats.
    spread = [deviation(column) for column in columns(table)]
    table = [[x / s for x, s in zip(row, spread, strict=True)] for row in table]
    centre = mean_of(table)
    n = len(table)
    covariance = [
        [
            sum((row[a] - centre[a]) * (row[b] - centre[b]) for row in table) / (n - 1)
            for b in range(3)
        ]
        for a in range(3)
    ]
    return [sum(x * y for x, y in zip(row, solved(covariance, row), strict=True)) for row in table]


def capped(counts, cap):
    """Shares min(c n_j, cap) with the c that makes their sum 1, found by halving."""
    if cap * len(counts) <= 1:
        return [1 / len(counts)] * len(counts)
    low, high = 0.0, 1.0
    for _ in range(200):
        middle_c = (low + high) / 2
        if sum(min(middle_c * count, cap) for count in counts) < 1:
            low = middle_c
        else:
            high = middle_c
    return [min(high * count, cap) for count in counts]


def weighted_median(values, shares):
    """By its definition: as much weight on either side."""
    ordered = sorted(zip(values, shares, strict=True))
    for place, (value, _) in enumerate(ordered):
        upto = sum(share for _, share in ordered[: place + 1])
        if abs(upto - 0.5) <= 1e-9:
            return (value + ordered[place + 1][0]) / 2
        if upto > 0.5:
            return value
    raise AssertionError("shares sum to 1")


def weighted_trimmed_mean(values, shares, trim):
    ordered = sorted(zip(values, shares, strict=True))
    total, start = 0.0, 0.0
    for value, share in ordered:
        inside = max(0.0, min(start + share, 1 - trim) - max(start, trim))
        total += inside * value
        start += share
    return total / (1 - 2 * trim)


def caf(rows, f):
    """Filter in as many dimensions as the rows have; the top eigenvector by multiplying."""
    n, dim = len(rows), len(rows[0])
    c, best, least = [1.0] * n, mean_of(rows), math.inf
    while sum(c) > n - 2 * f:
        m = mean_of(rows, c)
        x = [[a - b for a, b in zip(row, m, strict=True)] for row in rows]
        v = max((row for row, one in zip(x, c, strict=True) if one > 0), key=norm)
        if norm(v) < 1e-9:
            return m
        for _ in range(300):
            along = [sum(a * b for a, b in zip(row, v, strict=True)) for row in x]
            v = [
                sum(one * t * row[i] for one, t, row in zip(c, along, x, strict=True))
                for i in range(dim)
            ]
            length = norm(v)
            v = [value / length for value in v]
        tau = [sum(a * b for a, b in zip(row, v, strict=True)) ** 2 for row in x]
        variance = mean(tau, c)
        if variance < least:
            best, least = m, variance
        top = max(t for t, one in zip(tau, c, strict=True) if one > 0)
        c = [
            max(0.0, one * (1 - t / top)) if t < top else 0.0 for one, t in zip(c, tau, strict=True)
        ]
    return best
