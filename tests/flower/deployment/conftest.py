"""What every test here needs: Flower, Linux's /proc to find what is left, and patience."""

import sys
from pathlib import Path

import pytest


def pytest_collection_modifyitems(items):
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.slow)
            if not Path("/proc/self/environ").exists():
                item.add_marker(pytest.mark.skip(reason=f"needs /proc, not on {sys.platform}"))
