"""Columns of Arrow tables as rows of an array: which columns, and how their values become numbers.

Points are a column of lists of numbers (vectors, nested for more axes), a column of images (encoded files), or columns
of numbers side by side. Numbers become float32, unless they are wanted as they are stored.
"""

import io
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from balent.data.shard_formats.pixels import pixels
from balent.data.shard_formats.reader import Unreadable, Wanted
from balent.lookup import nearest

LABELS = ("label", "labels")  # never points


def chosen(path: str, schema: Any, wanted: Wanted) -> list[str]:
    """The names of the columns that points are made of."""
    if len(set(schema.names)) != len(schema.names):
        raise ValueError(f"{path} has two columns of one name: {', '.join(schema.names)[:200]}")
    if wanted.key is not None:
        _check_there(path, schema, wanted.key, "key")
    if wanted.column is not None:
        names = [name.strip() for name in wanted.column.split(",")]
        for name in names:
            _check_there(path, schema, name, "column")
        return names
    kinds = {field.name: _kind(field.type) for field in schema if field.name not in (wanted.key, *LABELS)}
    for kind in ("lists", "images"):
        found = [name for name, its in kinds.items() if its == kind]
        if len(found) == 1:
            return found
        if found:
            raise ValueError(
                f"{path} has several columns of {kind}: {', '.join(found)}; choose with column= (--column)"
            )
    numbers = [name for name, its in kinds.items() if its == "numbers"]
    if not numbers:
        raise ValueError(
            f"{path} must have a column of numbers, of lists of numbers or of images, but has {_described(schema)}"
        )
    return numbers


def _check_there(path: str, schema: Any, name: str, what: str) -> None:
    if name not in schema.names:
        raise ValueError(f"{path} has no column {name!r}, which {what}= names; {nearest(name, schema.names)}")


def _described(schema: Any) -> str:
    return ", ".join(f"{field.name} ({field.type})" for field in schema)[:200] or "no column"


def _kind(given: Any) -> str:
    from pyarrow import types

    plain = _storage(given)
    if _is_list(plain):
        inner = _storage(plain.value_type)
        return "lists" if _kind(inner) in ("numbers", "lists") else "others"
    if types.is_integer(plain) or types.is_floating(plain) or types.is_boolean(plain) or types.is_decimal(plain):
        return "numbers"
    has_bytes = types.is_struct(plain) and any(plain.field(i).name == "bytes" for i in range(plain.num_fields))
    return "images" if has_bytes or types.is_binary(plain) or types.is_large_binary(plain) else "others"


def _storage(given: Any) -> Any:
    from pyarrow import BaseExtensionType

    return given.storage_type if isinstance(given, BaseExtensionType) else given


def _is_list(given: Any) -> bool:
    from pyarrow import types

    return types.is_list(given) or types.is_large_list(given) or types.is_fixed_size_list(given)


def rows(batch: Any, names: Sequence[str], wanted: Wanted, first: int) -> np.ndarray:
    """The points of a record batch whose first row has this number."""
    columns = [_values(batch.column(batch.schema.get_field_index(name)), name, wanted, first) for name in names]
    if len(columns) == 1:
        return columns[0] if columns[0].ndim > 1 else columns[0][:, None]
    for name, column in zip(names, columns, strict=True):
        if column.ndim != 1:
            raise ValueError(f"several columns must hold one number in each row, but {name!r} has {column.shape[1:]}")
    return np.stack(columns, 1)


def _values(column: Any, name: str, wanted: Wanted, first: int) -> np.ndarray:
    kind = _kind(column.type)
    if kind == "others":
        raise ValueError(f"column {name!r} must hold numbers, lists of numbers or images, but holds {column.type}")
    if column.null_count:
        empty = first + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise Unreadable(empty, empty + 1, f"column {name!r} is empty")
    if kind == "images":
        return _images(column, wanted.size, first)
    found = _numbers(column, name, first)
    return found if wanted.exact else np.ascontiguousarray(found, np.float32)


def _images(column: Any, size: int, first: int) -> np.ndarray:
    cells = column.to_pylist()
    files = [cell["bytes"] if isinstance(cell, dict) else cell for cell in cells]
    empty = [i for i, content in enumerate(files) if content is None]
    if empty:
        at = first + empty[0]
        raise Unreadable(at, at + 1, "it holds the path of an image instead of its bytes")
    return pixels([partial(io.BytesIO, content) for content in files], size, range(first, first + len(files)))


def _numbers(column: Any, name: str, first: int) -> np.ndarray:
    """Numbers, or lists of them of one length, with an axis for each level."""
    shape, plain = [len(column)], _plain(column)
    while _is_list(plain.type):
        lengths = plain.value_lengths().to_numpy(zero_copy_only=False)
        if len(lengths) and (lengths != lengths[0]).any():
            odd = int(np.flatnonzero(lengths != lengths[0])[0])
            row = first + odd * shape[0] // max(1, len(lengths))
            raise Unreadable(
                row,
                row + 1,
                f"column {name!r} has a list of {lengths[odd]} values, but the one before has {lengths[0]}",
            )
        shape.append(int(lengths[0]) if len(lengths) else 0)
        plain = _plain(plain.flatten())
    if plain.null_count:
        odd = int(np.flatnonzero(plain.is_null().to_numpy(zero_copy_only=False))[0])
        row = first + odd * shape[0] // len(plain)
        raise Unreadable(row, row + 1, f"column {name!r} has an empty value in a list")
    return _array(plain).reshape(shape)


def _plain(column: Any) -> Any:
    from pyarrow import BaseExtensionType

    return column.storage if isinstance(column.type, BaseExtensionType) else column


def _array(plain: Any) -> np.ndarray:
    from pyarrow import float64, types

    plain = plain.cast(float64()) if types.is_decimal(plain.type) else plain
    return plain.to_numpy(zero_copy_only=False)


def keys(batch: Any, name: str, first: int) -> list[str]:
    """What identifies each row: the cell as text. 7 and "7" are one key."""
    column = batch.column(batch.schema.get_field_index(name))
    if column.null_count:
        empty = first + int(np.flatnonzero(column.is_null().to_numpy(zero_copy_only=False))[0])
        raise Unreadable(empty, empty + 1, f"the key column {name!r} is empty")
    return [str(cell) for cell in column.to_pylist()]
