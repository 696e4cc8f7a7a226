"""Mean shift with a flat kernel, for a few points of a few features."""

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.float64]
STILL = 1e-3
"""A centre that moves by less than this share of the radius has arrived."""
MOST_STEPS = 300
LEAST_RADIUS = 1e-9
"""Points that are closer are the same, also where the estimated radius is 0."""


def estimated_radius(points: Points, quantile: float) -> float:
    """Return the mean distance from a point to its k-th nearest, itself the first, k = q n."""
    count = max(1, int(len(points) * quantile))
    nearest = np.sort(_distances(points, points), axis=1)
    return max(LEAST_RADIUS, float(nearest[:, count - 1].mean()))


def largest_cluster(points: Points, radius: float) -> npt.NDArray[np.bool_]:
    """Mark the points of the largest cluster; of equals, that of the denser centre.

    Centres start from the points, rounded to a grid of the radius where that makes fewer, and move
    to the mean of the points within the radius until they are still. Of centres within a radius
    only the densest stays. A point belongs to the nearest centre if that is within the radius.
    """
    seeds = np.unique(np.round(points / radius), axis=0) * radius
    if len(seeds) == len(points):
        seeds = points
    found: dict[tuple[float, ...], int] = {}
    for seed in seeds:
        settled, inside = _settled(seed, points, radius)
        if inside:
            found[tuple(settled.tolist())] = inside
    ordered = sorted(found, key=lambda centre: (found[centre], centre), reverse=True)
    centres: list[tuple[float, ...]] = []
    for centre in ordered:
        if all(float(np.linalg.norm(np.subtract(centre, other))) > radius for other in centres):
            centres.append(centre)
    apart = _distances(points, np.array(centres))
    labels = np.where(apart.min(1) <= radius * (1 + 1e-9), apart.argmin(1), -1)
    sizes = [int((labels == label).sum()) for label in range(len(centres))]
    marked: npt.NDArray[np.bool_] = labels == int(np.argmax(sizes))
    return marked


def _settled(seed: Points, points: Points, radius: float) -> tuple[Points, int]:
    """Return where a centre comes to rest and how many points are within the radius of it."""
    centre, inside = seed, 0
    for _ in range(MOST_STEPS):
        near = points[np.linalg.norm(points - centre, axis=1) <= radius]
        if not len(near):
            break
        before, centre, inside = centre, near.mean(0), len(near)
        if float(np.linalg.norm(centre - before)) <= STILL * radius:
            break
    return centre, inside


def _distances(one: Points, two: Points) -> Points:
    found: Points = np.linalg.norm(one[:, None] - two[None, :], axis=2)
    return found
