"""A digest of a pool, which shows whether positions still mean the same points.

It is computed from the ids if points have ids; else from the number of points, their type and shape, and the content of
1,000 of them, chosen by a hash of their number.
"""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from balent.data.pool import Indexed
from balent.kernels.hashing import mixed

ROWS = 1000
KEY = 0x62616C656E74  # "balent": the choice of rows must never change


def pin(pool: Indexed, ids: Sequence[str] | None) -> str:
    """What a directory records of its pool: `ids:…`, `rows:…`, or `length:…` if nothing else stays the same."""
    if ids is not None:
        return f"ids:{of_ids(ids)}"
    first = of_rows(pool)
    stable = isinstance(pool.source, Tensor | np.ndarray | Mapping) or first == of_rows(pool)
    return f"rows:{first}" if stable else f"length:{len(pool)}"


def matches(pinned: str, pool: Indexed, ids: Sequence[str] | None) -> bool:
    """Is this the pool that was pinned?"""
    kind = pinned.partition(":")[0]
    if kind == "ids":
        return ids is not None and pinned == f"ids:{of_ids(ids)}"
    return pinned == (f"rows:{of_rows(pool)}" if kind == "rows" else f"length:{len(pool)}")


def of_ids(ids: Iterable[str]) -> str:
    """The ids, in order."""
    digest = hashlib.sha256()
    for name in ids:
        encoded = name.encode("utf-8", "surrogatepass")
        digest.update(len(encoded).to_bytes(8, "little") + encoded)
    return digest.hexdigest()


def hashes(ids: Iterable[str]) -> Tensor:
    """A whole number for each id: the same wherever the id stands."""
    digests = (hashlib.blake2b(name.encode("utf-8", "surrogatepass"), digest_size=8).digest() for name in ids)
    return torch.from_numpy(np.frombuffer(b"".join(digests), "<i8").astype(np.int64))


def of_rows(pool: Indexed) -> str:
    """The number of points, and some of them."""
    digest = hashlib.sha256(f"{len(pool)}".encode())
    for at in rows(len(pool)).split(100):
        _add(digest, pool[at])
    return digest.hexdigest()


def rows(points: int) -> Tensor:
    """Positions of at most 1,000 points, ascending."""
    if points <= ROWS:
        return torch.arange(points)
    return (mixed(KEY, torch.arange(ROWS)) % points).unique()


def _add(digest: Any, value: Any) -> None:
    """Adds content with its type and shape."""
    if isinstance(value, Mapping):
        for name in sorted(value):
            digest.update(str(name).encode())
            _add(digest, value[name])
    elif isinstance(value, list | tuple):
        digest.update(f"list {len(value)}".encode())
        for item in value:
            _add(digest, item)
    elif isinstance(value, np.ndarray) and value.dtype.hasobject:  # its bytes are addresses, of this process alone
        _add(digest, value.tolist())
    elif isinstance(value, Tensor | np.ndarray):
        array = _array(value)
        digest.update(f"{array.dtype.str} {array.shape[1:]}".encode())
        digest.update(np.ascontiguousarray(array).tobytes())
    else:
        words = repr(value)
        digest.update((type(value).__qualname__ if " at 0x" in words else words).encode())


def _array(value: Any) -> np.ndarray:
    if isinstance(value, Tensor):
        value = value.detach().cpu()
        value = (value.view(torch.int16) if value.dtype == torch.bfloat16 else value).numpy()
    return value.astype(value.dtype.newbyteorder("<"), copy=False)
