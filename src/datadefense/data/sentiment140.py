"""Sentiment140: tweets with a positive or a negative mood, from the official CSV or from parquet.

The official files are latin-1 without a header, with the columns target, id, date, flag, user and
text. A target is 0 (negative), 4 (positive) or, in the test file only, 2 (neutral). Neutral tweets
are left out; the others are labelled 0 and 1.
"""

import csv
import io
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import Tensor

from datadefense.data.errors import DataError, one_line
from datadefense.data.file_content import opened
from datadefense.data.parquet import column_names, read_texts

NEGATIVE, NEUTRAL, POSITIVE = 0, 2, 4
TARGETS = {str(target): target for target in (NEGATIVE, NEUTRAL, POSITIVE)}
MAX_BYTES = 1 << 30
"""Most bytes of a CSV; the largest has 239 million."""
COLUMNS = ("target", "id", "date", "flag", "user", "text")

Tweets = tuple[list[str], Tensor, list[str] | None]


def read_tweets_csv(path: Path) -> Tweets:
    """Read an official CSV: texts, labels 0 or 1, and who wrote them."""
    targets: list[int] = []
    texts: list[str] = []
    users: list[str] = []
    number = 0
    with opened(path, MAX_BYTES) as plain:
        file = io.TextIOWrapper(plain, encoding="latin-1", newline="")
        try:
            for number, row in enumerate(csv.reader(file), start=1):  # noqa: B007
                target, _, _, _, user, text = row
                targets.append(_target(target))
                users.append(user)
                texts.append(text)
        except (csv.Error, ValueError) as error:
            expected = ", ".join(COLUMNS)
            raise DataError(f"{path}, row {number}: not {expected}: {one_line(error)}") from error
    return _without_neutral(path, texts, torch.tensor(targets, dtype=torch.int64), users)


def read_tweets_parquet(paths: Path | Sequence[Path]) -> Tweets:
    """Read the hub's copy: columns text, sentiment and, where it is there, user."""
    files = (paths,) if isinstance(paths, Path) else tuple(paths)
    texts, targets = read_texts(files, "text", "sentiment")
    named = all("user" in column_names(path) for path in files)
    users = read_texts(files, "user", "sentiment")[0] if named else None
    return _without_neutral(files[0], texts, targets, users)


def _target(text: str) -> int:
    if text not in TARGETS:
        raise ValueError(f"a target is 0, 2 or 4, found {text[:40]!r}")
    return TARGETS[text]


def _without_neutral(
    path: Path, texts: list[str], targets: Tensor, users: list[str] | None
) -> Tweets:
    if not texts:
        raise DataError(f"{path} holds no tweets")
    known = torch.tensor([NEGATIVE, NEUTRAL, POSITIVE])
    if len(wrong := targets[~torch.isin(targets, known)]):
        raise DataError(f"{path}: a target is 0, 2 or 4, found {int(wrong[0])}")
    has_sentiment = (targets != NEUTRAL).tolist()
    if not all(has_sentiment):
        texts = [text for text, keep in zip(texts, has_sentiment, strict=True) if keep]
        users = users and [user for user, keep in zip(users, has_sentiment, strict=True) if keep]
    return texts, (targets[targets != NEUTRAL] == POSITIVE).long(), users
