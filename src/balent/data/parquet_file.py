"""Rows as a parquet file, complete or not there (extra [parquet]). No torch here."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from balent.data.formats.parquet import arrow
from balent.data.outputs import whole


def write(path: Path, header: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
    """A column for each name. They are held in memory."""
    _, parquet = arrow()
    from pyarrow import table

    columns = list(zip(*rows, strict=True)) or [()] * len(header)
    found = table({name: list(column) for name, column in zip(header, columns, strict=True)})
    with whole(path) as partial:
        parquet.write_table(found, partial)
