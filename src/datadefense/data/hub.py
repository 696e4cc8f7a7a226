"""The Hugging Face hub: download a part of a data set at a pinned revision."""

from functools import partial
from pathlib import Path

from datadefense.data.dataset import Dataset, Hub, Split
from datadefense.data.errors import DataError, one_line
from datadefense.data.folder import absence


def download(dataset: Dataset, folder: Path | None, split: Split) -> tuple[Path, ...]:
    """Return the files of one split from the hub; ``folder`` is where they were not found."""
    absent = absence(dataset, folder, split, dataset.layouts)
    hub = dataset.hub
    if hub is None:
        raise DataError(f"{absent}; it has no copy on the hub")
    try:
        return tuple(_fetch(hub, name) for name in hub.files[split])
    except ImportError as error:
        raise DataError(f"{absent}; to download it: pip install 'datadefense[data]'") from error
    except Exception as error:  # the network fails in many ways
        reason = f"{type(error).__name__}: {one_line(error)}"
        raise DataError(f"{absent}; {hub.repo} could not be downloaded ({reason})") from error


def _fetch(hub: Hub, name: str) -> Path:
    from huggingface_hub import (  # noqa: PLC0415 - an extra
        get_hf_file_metadata,
        hf_hub_download,
        hf_hub_url,
    )
    from huggingface_hub.errors import LocalEntryNotFoundError  # noqa: PLC0415

    fetch = partial(hf_hub_download, hub.repo, name, repo_type="dataset", revision=hub.revision)
    try:
        return Path(fetch(local_files_only=True))
    except LocalEntryNotFoundError:
        # Asked once: hf_hub_download itself would ask six times, for 23 seconds, when offline.
        url = hf_hub_url(hub.repo, name, repo_type="dataset", revision=hub.revision)
        get_hf_file_metadata(url)
        return Path(fetch())
