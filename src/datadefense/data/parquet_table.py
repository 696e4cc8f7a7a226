"""A parquet file from elsewhere as a table: read piece by piece, never more than it may hold.

A few bytes of parquet can stand for very many rows. So rows are counted before they are read, they
are read a few at a time, and reading ends where a file gives far more than its size.
"""

from collections.abc import Sequence
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


def read_table(path: Path, column: str, label_column: str) -> Any:
    """Return two columns, the second of integers; at least one row."""
    arrow, file = arrow_module(), open_parquet(path)
    schema = file.schema_arrow
    for name in (column, label_column):
        if name not in schema.names:
            raise DataError(f"{path} has no column {name!r}; it has: {', '.join(schema.names)}")
    if not arrow.types.is_integer(schema.field(label_column).type):
        raise DataError(f"{path}: {label_column!r} must hold integers")
    table = read_columns(path, file, [column, label_column])
    if table.num_rows == 0:
        raise DataError(f"{path} has no rows")
    return table


def read_columns(path: Path, file: Any, names: Sequence[str]) -> Any:
    """Return some columns of an open file as a table."""
    arrow, wanted = arrow_module(), list(dict.fromkeys(names))
    fields = [field for field in file.schema_arrow if field.name in wanted]
    for field in fields:
        if any(word in str(field.type) for word in SHORTHANDS):
            raise DataError(f"{path}: {field.name!r} must hold values, not {field.type}")
    with refusing(f"{path} is not a readable parquet file"):
        size, content, batches = path.stat().st_size, 0, []
        for batch in file.iter_batches(batch_size=ROWS_AT_ONCE, columns=wanted):
            content += batch.nbytes
            check_growth(str(path), content, size)
            batches.append(batch)
        if not batches:
            return arrow.schema(fields).empty_table()
        return arrow.Table.from_batches(batches).combine_chunks()


def open_parquet(path: Path) -> Any:
    """Return pyarrow's view of a file, with no more rows than are read; columns are not read."""
    arrow = arrow_module()
    with opened(path, MAX_FILE), refusing(f"{path} is not a readable parquet file"):
        file = arrow.parquet.ParquetFile(path)
    if (rows := int(file.metadata.num_rows)) > MAX_ROWS:
        raise DataError(f"{path} claims {rows} rows, expected <= {MAX_ROWS}")
    return file


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
