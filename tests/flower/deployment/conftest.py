"""What every test here needs: Flower, Linux's /proc to find what is left, and patience."""

import sys
from pathlib import Path

import pytest


def pytest_collection_modifyitems(config, items):
    here = Path(__file__).parent
    mine = [item for item in items if here in item.path.parents]
    for item in mine:
        item.add_marker(pytest.mark.slow)
        if not Path("/proc/self/environ").exists():
            item.add_marker(pytest.mark.skip(reason=f"needs /proc, not on {sys.platform}"))
    workers = getattr(config, "workerinput", {}).get("workercount", 1)
    if workers > 1:
        items[:] = _waiting_first(items, mine, workers)


def _waiting_first(items, mine, workers):
    """Return the tests such that two of xdist's workers begin with ours.

    Each gets an equal share in this order and steals from the others at its end. Ours take minutes
    but wait for most of them: begun last, all else would be done and wait for them too.
    """
    first = [item for item in mine if item.path.name == "test_insecure.py"]
    second = [item for item in mine if item not in first]
    rest = [item for item in items if item not in mine]
    share = max(0, len(items) // workers - len(first))
    return [*first, *rest[:share], *second, *rest[share:]]
