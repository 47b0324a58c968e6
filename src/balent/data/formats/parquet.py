"""Parquet files, with the extra [parquet]: columns of numbers as arrays, other columns as lists. No torch here."""

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from balent.data.cells import shown
from balent.data.formats import limits

ByName = Mapping[str, Sequence[Any] | np.ndarray]


def arrow() -> tuple[type[Exception], Any]:
    """The exception that pyarrow raises for damaged files, and its parquet module."""
    try:
        from pyarrow import ArrowException, parquet
    except ImportError:
        raise ValueError("parquet files need pyarrow; install it with: pip install 'balent[parquet]'") from None
    return ArrowException, parquet


def parquet_columns(path: Path, advice: str) -> ByName:
    """All columns by name. A file that would take far more memory than its size is refused with this advice."""
    _, parquet = arrow()
    try:
        with parquet.ParquetFile(path) as file:
            schema, about = file.schema_arrow, file.metadata
            _check_columns(schema)
            limits.check(8 * about.num_rows * about.num_columns, path.stat().st_size, advice)
        with parquet.ParquetFile(path, read_dictionary=[field.name for field in schema if _is_text(field)]) as file:
            found = file.read()
            found.validate(full=True)
        return {name: _values(found[name]) for name in found.column_names}
    except MemoryError:
        raise
    except Exception as error:  # pyarrow has a dozen kinds for damaged files
        raise ValueError(f"{path} cannot be read as parquet: {str(error)[:200]}") from None


def _check_columns(schema: Any) -> None:
    from pyarrow import types

    nested = [field.name for field in schema if types.is_nested(field.type)]
    if nested:
        raise ValueError(f"column {shown(nested[0])} holds lists; save one number or word in each cell")
    if len(set(schema.names)) != len(schema.names):
        raise ValueError(f"two columns have one name: {', '.join(schema.names)[:200]}")


def _is_text(field: Any) -> bool:
    from pyarrow import types

    return any(test(field.type) for test in (types.is_string, types.is_large_string, types.is_binary))


def _values(column: Any) -> Sequence[Any] | np.ndarray:
    """Numbers as an array: a list of Python's would take several times the memory. Equal words are one object."""
    from pyarrow import types

    if types.is_dictionary(column.type):
        return [word for chunk in column.chunks for word in _words(chunk)]
    number = types.is_integer(column.type) or types.is_floating(column.type)
    return column.to_numpy() if number and column.null_count == 0 else column.to_pylist()


def _words(chunk: Any) -> Iterator[Any]:
    words = chunk.dictionary.to_pylist()
    return (None if i is None else words[i] for i in chunk.indices.to_pylist())
