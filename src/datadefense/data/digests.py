"""The digest of a data set: the same for every copy, in whatever format it is stored."""

import hashlib
from collections.abc import Iterator

from datadefense.core.examples import Examples
from datadefense.data.dataset import Data


def digest(data: Data) -> str:
    """Return a SHA-256 over every example and its label; the order of examples does not count."""
    return hashlib.sha256(b"".join(sorted(_fingerprints(data)))).hexdigest()


def _fingerprints(data: Data) -> Iterator[bytes]:
    contents: Iterator[bytes]
    if isinstance(data, Examples):
        contents = (pixels.tobytes() for pixels in data.inputs.numpy())
    else:
        contents = (text.encode() for text in data.texts)
    for label, content in zip(data.labels.tolist(), contents, strict=True):
        yield hashlib.sha256(b"%d:" % label + content).digest()
