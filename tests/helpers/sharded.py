"""The same points in every format of shards, and in memory at the positions that they have there."""

import io
import json
import tarfile
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import pyarrow as pa
import torch
from pyarrow import parquet

ENDS = (0, 1025, 1025, 1300, 2601)  # where shards end: one is empty, one has a last block of one row


@dataclass(frozen=True)
class InMemory:
    """Rows of an array at given positions, read in the blocks that shards would have."""

    array: object
    positions: torch.Tensor
    names: torch.Tensor | None = None

    @property
    def size(self):
        return len(self.positions)

    @property
    def keyed(self):
        return self.names is not None

    def keys(self, positions):
        return positions if self.names is None else self.names[self._rows(positions)]

    def at(self, positions):
        return self.array[self._rows(positions).numpy()]

    def blocks(self, points):
        shard, row = self.positions >> 32, self.positions & 0xFFFFFFFF
        _, lengths = torch.stack([shard, row // points], 1).unique_consecutive(dim=0, return_counts=True)
        for part in self.positions.split(lengths.tolist()):
            yield self.at(part), part

    def _rows(self, positions):
        return torch.searchsorted(self.positions, positions)


def in_memory(array, ends=ENDS, names=None):
    """The array at the positions of shards that end at these rows."""
    at = [torch.arange(b - a) | (shard << 32) for shard, (a, b) in enumerate(pairwise(ends))]
    return InMemory(array, torch.cat(at), names)


def keys(count):
    return [f"item-{(7919 * i) % 100_003}" for i in range(count)]


def parts(array, ends=ENDS):
    return [(f"{shard:03d}", array[a:b], keys(ends[-1])[a:b]) for shard, (a, b) in enumerate(pairwise(ends))]


def npy(folder, array, ends=ENDS):
    for name, rows, _ in parts(array, ends):
        np.save(folder / f"{name}.npy", rows)


def lists(array, names):
    values = pa.FixedSizeListArray.from_arrays(pa.array(array.reshape(-1)), int(np.prod(array.shape[1:])))
    return pa.table({"id": names, "x": values.cast(pa.list_(pa.float32())), "label": [0] * len(array)})


def tables(folder, array, ends=ENDS, row_group=300):
    for name, rows, names in parts(array, ends):
        parquet.write_table(lists(rows, names), folder / f"{name}.parquet", row_group_size=row_group)


def columns(folder, array, ends=ENDS):
    for name, rows, _ in parts(array, ends):
        table = pa.table({f"c{i}": rows[:, i] for i in range(rows.shape[1])})
        parquet.write_table(table, folder / f"{name}.parquet", row_group_size=1000)


def archives(folder, array, ends=ENDS):
    for name, rows, names in parts(array, ends):
        with tarfile.open(folder / f"{name}.tar", "w") as archive:
            for row, key in zip(rows, names, strict=True):
                add(archive, f"{key}.cls", b"3")
                add(archive, f"{key}.npy", npy_bytes(row))


def add(archive, name, content):
    info = tarfile.TarInfo(name)
    info.size = len(content)
    archive.addfile(info, io.BytesIO(content))


def npy_bytes(row):
    file = io.BytesIO()
    np.save(file, row)
    return file.getvalue()


def hub(folder, array, ends=ENDS):
    """As `datasets.Dataset.save_to_disk` does it."""
    for name, rows, names in parts(array, ends):
        table = lists(rows, names)
        with pa.OSFile(str(folder / f"{name}.arrow"), "wb") as file, pa.ipc.new_stream(file, table.schema) as stream:
            stream.write_table(table, max_chunksize=1000)
    files = [{"filename": f"{name}.arrow"} for name, _, _ in parts(array, ends)]
    (folder / "state.json").write_text(json.dumps({"_data_files": files, "_indices_files": None}))
    (folder / "dataset_info.json").write_text("{}")


FORMATS = {"npy": npy, "parquet": tables, "columns": columns, "tar": archives, "hub": hub}
