"""Views of neighbours, kept between commands: a pool is looked through once, not by each process.

A view depends on the row and on the anchors, so there is one file for each set of anchors; those of earlier ones are
removed. It can be lost without harm.
"""

import hashlib
import io
from pathlib import Path

import numpy as np
import torch

from balent.data import arrays
from balent.loop.journal import write
from balent.predictors.logistic import unit_rows
from balent.predictors.neighbours import MEMORY, Neighbours
from balent.project.features import Numbers


def restore(directory: Path, neighbours: Neighbours, prints: list[str], rows: Numbers) -> None:
    """Gives neighbours the views that are on disk."""
    path = _path(directory, neighbours)
    if path.exists():
        kept = arrays.several(path, ("prints", "views"))
        at = {print: i for i, print in enumerate(kept["prints"].tolist())}
        known = [i for i, print in enumerate(prints) if print in at]
        if known:
            views = torch.from_numpy(kept["views"][[at[prints[i]] for i in known]])
            neighbours.remember(unit_rows(rows[known], neighbours.centre), views)


def keep(directory: Path, neighbours: Neighbours, prints: list[str], rows: Numbers) -> None:
    """Writes the views of all rows, computing those that are missing, if a process can remember as many."""
    path = _path(directory, neighbours)
    if 2 * rows.nbytes > MEMORY or (path.exists() and len(arrays.npz(path, "prints")) == len(prints)):
        return
    file = io.BytesIO()
    np.savez(file, prints=np.array(prints), views=neighbours(unit_rows(rows, neighbours.centre)).numpy())
    for old in directory.glob("views-*.npz"):
        old.unlink(missing_ok=True)
    write(path, file.getvalue())


def _path(directory: Path, neighbours: Neighbours) -> Path:
    digest = hashlib.sha256(torch.cat([neighbours.anchors, neighbours.centre[None]]).numpy().tobytes()).hexdigest()
    return directory / f"views-{digest[:12]}.npz"
