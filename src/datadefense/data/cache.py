"""The cache folder: where what can be computed again is kept between runs."""

import os
from pathlib import Path


def cache_folder() -> Path:
    """Return the folder for what can be computed again: DATADEFENSE_CACHE or ~/.cache/..."""
    chosen = os.environ.get("DATADEFENSE_CACHE")
    return Path(chosen).expanduser() if chosen else Path.home() / ".cache" / "datadefense"
