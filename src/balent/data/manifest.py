"""The shards of a pool, in an order that never changes: an append-only list of files with their numbers of rows.

The number of a shard is its line. A saved manifest is a file of JSON lines. When shards are added to a pool they are
appended, so points keep their positions. A shard that has changed since it was listed is an error. No torch here.
"""

import json
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from balent.data import outputs, storage
from balent.data.damage import Damaged, Skipped

ROWS = 1 << 32  # a shard has fewer
SHARDS = 1 << 31
TOGETHER = 16  # shards whose rows are counted side by side: it is waiting, mostly
Counter = Callable[[str], int]


@dataclass(frozen=True)
class Shard:
    """One file of a pool. `stamp` changes with its content: an etag, or the time of the last change."""

    path: str
    rows: int
    size: int
    stamp: str


@dataclass(frozen=True)
class Listing:
    """The shards of a pool, and what cannot be used."""

    shards: tuple[Shard, ...]
    skipped: tuple[Skipped, ...] = ()


def listing(
    paths: Sequence[str],
    rows: Counter,
    describe: Callable[[str], storage.About],
    saved: Path | None = None,
    skip_bad: bool = False,
) -> Listing:
    """The shards at these paths, those of a saved manifest first and in its order, the others by name.

    paths     of the shards, in any order
    rows      counts the rows of a shard
    describe  size and stamp of a shard
    saved     a file with the manifest: it is continued, or made
    skip_bad  leave out shards that cannot be used, instead of an error
    """
    _check_different(paths)
    known = read(saved) if saved is not None and saved.exists() else []
    before = {shard.path for shard in known}
    new = sorted(path for path in paths if path not in before)
    with ThreadPoolExecutor(TOGETHER) as workers:
        checked = workers.map(lambda shard: _tried(lambda: _same(shard, set(paths), describe, saved), shard), known)
        counted = workers.map(lambda path: _tried(lambda: _counted(path, rows, describe), path), new)
        old, added = list(checked), list(counted)
    bad = [found for found in old + added if isinstance(found, Damaged)]
    if bad and not skip_bad:
        raise bad[0]
    found = [*known, *(shard for shard in added if isinstance(shard, Shard))]
    if len(found) > SHARDS:
        raise ValueError(f"a pool may have {SHARDS:,} shards, but has {len(found):,}; make larger ones")
    if saved is not None and len(found) > len(known):
        write(saved, found)
    return Listing(tuple(found), tuple(error.skipped for error in bad))


def _tried(work: Callable[[], Shard], what: Shard | str) -> Shard | Damaged:
    path, rows = (what, None) if isinstance(what, str) else (what.path, what.rows)
    try:
        return work()
    except Damaged as error:
        return error
    except (FileNotFoundError, IsADirectoryError) as error:
        return Damaged(path, 0, rows, f"it cannot be opened: {error.strerror or error}")


def _same(shard: Shard, paths: set[str], describe: Callable[[str], storage.About], saved: Path | None) -> Shard:
    """The shard itself, if it is as it was when it was listed."""
    if shard.path not in paths:
        raise Damaged(shard.path, 0, shard.rows, f"it is listed in {saved}, but is not among the files given")
    check_same(shard, describe(shard.path))
    return shard


def check_same(shard: Shard, now: storage.About) -> None:
    if (now.size, now.stamp) != (shard.size, shard.stamp):
        larger = f"it has {now.size:,} {now.unit} instead of {shard.size:,}"
        what = larger if now.size != shard.size else "it was written again"
        raise Damaged(
            shard.path, 0, shard.rows, f"{what} since its rows were counted; begin a new manifest, or restore the file"
        )


def _counted(path: str, rows: Counter, describe: Callable[[str], storage.About]) -> Shard:
    about, count = describe(path), rows(path)
    if count >= ROWS:
        raise ValueError(f"{path} has {count:,} rows, but a shard must have fewer than {ROWS:,}; split it")
    return Shard(path, count, about.size, about.stamp)


def _check_different(paths: Sequence[str]) -> None:
    if len(set(paths)) < len(paths):
        twice = next(path for i, path in enumerate(paths) if path in paths[:i])
        raise ValueError(f"each shard must be given once, but {twice} is given twice; its points would be picked twice")


def read(path: Path) -> list[Shard]:
    """The shards of a saved manifest, in order."""
    found = []
    for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        try:
            fields = json.loads(line)
            found.append(Shard(str(fields["path"]), int(fields["rows"]), int(fields["size"]), str(fields["stamp"])))
        except (ValueError, TypeError, KeyError):
            raise ValueError(
                f'{path}, line {number}, must be {{"path", "rows", "size", "stamp"}} in JSON, but is {line[:80]!r}; '
                "name another file for the manifest"
            ) from None
    return found


def write(path: Path, shards: Sequence[Shard]) -> None:
    """All of it or nothing."""
    with outputs.whole(path) as partial:
        partial.write_text("".join(f"{json.dumps(asdict(shard))}\n" for shard in shards), encoding="utf-8")
