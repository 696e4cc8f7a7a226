import pytest
import torch

from datadefense.data.errors import DataError
from datadefense.data.parquet import write_texts
from datadefense.data.sentiment140 import read_tweets_csv, read_tweets_parquet


def row(target, text, user="someone"):
    text = text.replace('"', '""')
    return f'"{target}","1467","Mon Apr 06 22:19:45 PDT 2009","NO_QUERY","{user}","{text}"\n'


def write(folder, *rows):
    path = folder / "training.1600000.processed.noemoticon.csv"
    path.write_bytes("".join(rows).encode("latin-1"))
    return path


def test_the_official_file(tmp_path):
    path = write(
        tmp_path,
        row(0, "@you, that's a bummer.  \xe9", "first"),
        row(4, 'she said "yes", twice', "second"),
        row(2, "it is a phone", "third"),
        row(4, "", "first"),
    )
    texts, labels, users = read_tweets_csv(path)
    assert texts == ["@you, that's a bummer.  \xe9", 'she said "yes", twice', ""]
    assert labels.tolist() == [0, 1, 1]
    assert labels.dtype == torch.int64
    assert users == ["first", "second", "first"]


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "holds no tweets"),
        (["target,text\n"], "row 1: not target, id, date, flag, user, text"),
        ([row(0, "a"), '"0","1","2"\n'], "row 2: not target, id"),
        ([row("x", "a")], "row 1: not target, id"),
        ([row(0, "a"), row(3, "b")], "a target is 0, 2 or 4, found '3'"),
        ([row(0, "a"), row(0, "b" * 200_000)], "field larger than field limit"),
    ],
)
def test_wrong_files(tmp_path, rows, message):
    with pytest.raises(DataError, match=rf"noemoticon\.csv.*{message}"):
        read_tweets_csv(write(tmp_path, *rows))


def test_a_missing_file(tmp_path):
    with pytest.raises(DataError, match="is not a file"):
        read_tweets_csv(tmp_path / "gone.csv")


def test_the_hubs_copy(tmp_path):
    path = tmp_path / "0000.parquet"
    columns = {"text": ["a", "b", "c"], "sentiment": [4, 2, 0]}
    write_texts(path, columns | {"user": ["x", "y", "z"]})
    texts, labels, users = read_tweets_parquet(path)
    assert (texts, labels.tolist(), users) == (["a", "c"], [1, 0], ["x", "z"])
    without = tmp_path / "0001.parquet"
    write_texts(without, columns)
    assert read_tweets_parquet(without)[2] is None
    assert read_tweets_parquet([path, without])[2] is None
    assert read_tweets_parquet([path, path])[0] == ["a", "c"] * 2


def test_labels_that_are_no_targets(tmp_path):
    path = tmp_path / "0000.parquet"
    write_texts(path, {"text": ["a"], "sentiment": [1]})
    with pytest.raises(DataError, match=r"0000\.parquet: a target is 0, 2 or 4, found 1"):
        read_tweets_parquet(path)
