"""A parquet file from elsewhere as a table: read piece by piece, never more than it may hold.

A few bytes of parquet can stand for very many rows. So rows are counted before they are read, they
are read a few at a time, and reading ends where a file gives far more than its size.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from datadefense.data.errors import DataError, refusing
from datadefense.data.file_content import opened

MAX_FILE = 1 << 32
MAX_ROWS = 10_000_000
ROWS_AT_ONCE = 256
SHORTHANDS = ("dictionary", "run_end_encoded")
"""Types whose rows take no memory until they are looked at."""
GROWTH, SLACK, MAX_CONTENT = 100, 1 << 26, 1 << 31
"""A file of n bytes gives at most GROWTH * n + SLACK, and never more than MAX_CONTENT."""


@dataclass(frozen=True, slots=True)
class ParquetTable:
    """A parquet file that is open: its path, its size in bytes, and pyarrow's view of it."""

    path: Path
    size: int
    file: Any

    @property
    def names(self) -> list[str]:
        """Return the names of the columns."""
        return list(self.file.schema_arrow.names)

    @property
    def num_rows(self) -> int:
        """Return the number of rows by the file's own statement."""
        return int(self.file.metadata.num_rows)

    def read(self, names: Sequence[str]) -> Any:
        """Return some columns."""
        arrow, wanted = arrow_module(), list(dict.fromkeys(names))
        fields = [field for field in self.file.schema_arrow if field.name in wanted]
        for field in fields:
            if any(word in str(field.type) for word in SHORTHANDS):
                raise DataError(f"{self.path}: {field.name!r} must hold values, not {field.type}")
        content, batches = 0, []
        with refusing(f"{self.path} is not a readable parquet file"):
            for batch in self.file.iter_batches(batch_size=ROWS_AT_ONCE, columns=wanted):
                content += batch.nbytes
                check_growth(str(self.path), content, self.size)
                batches.append(batch)
            if not batches:
                return arrow.schema(fields).empty_table()
            return arrow.Table.from_batches(batches).combine_chunks()


@contextmanager
def open_parquet(path: Path) -> Iterator[ParquetTable]:
    """Open a file that has no more bytes and rows than are read; columns are not read yet."""
    arrow = arrow_module()
    with opened(path, MAX_FILE) as plain:
        with refusing(f"{path} is not a readable parquet file"):
            file = arrow.parquet.ParquetFile(plain)
        table = ParquetTable(path, os.fstat(plain.fileno()).st_size, file)
        if table.num_rows > MAX_ROWS:
            raise DataError(f"{path} claims {table.num_rows} rows, expected <= {MAX_ROWS}")
        yield table


def read_table(path: Path, column: str, label_column: str) -> Any:
    """Return two columns, the second of integers; at least one row."""
    arrow = arrow_module()
    with open_parquet(path) as opened_table:
        for name in (column, label_column):
            if name not in opened_table.names:
                there = ", ".join(opened_table.names)
                raise DataError(f"{path} has no column {name!r}; it has: {there}")
        label_type = opened_table.file.schema_arrow.field(label_column).type
        if not arrow.types.is_integer(label_type):
            raise DataError(f"{path}: {label_column!r} must hold integers")
        table = opened_table.read([column, label_column])
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows")
    return table


def check_growth(where: str, content: int, size: int) -> None:
    """Raise if a file of ``size`` bytes gives more ``content`` than a data set would."""
    most = min(GROWTH * size + SLACK, MAX_CONTENT)
    if content > most:
        raise DataError(
            f"{where} gives more than {content} bytes, expected <= {most} from its {size} bytes"
        )


def arrow_module() -> Any:
    """Return pyarrow, which comes with the extra ``data``."""
    try:
        import pyarrow.parquet  # noqa: PLC0415 - an extra
    except ImportError as error:
        raise extra_missing(error) from error
    return pyarrow


def extra_missing(error: ImportError) -> DataError:
    """Return what to install."""
    return DataError(f"this data needs {error.name}: pip install 'datadefense[data]'")
