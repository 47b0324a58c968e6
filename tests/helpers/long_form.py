"""Files of probabilities in long form."""

import csv

import numpy as np
import pyarrow as pa
from pyarrow import parquet

from balent.data.probabilities import COLUMNS


def long_form(p, points=None):
    """Rows (point, draw, class, probability)."""
    points = range(len(p)) if points is None else points
    return [(points[i], k, c, repr(float(p[i, k, c]))) for i, k, c in np.ndindex(p.shape)]


def write_csv(path, rows, header=COLUMNS):
    with path.open("w", newline="") as file:
        csv.writer(file).writerows([header, *rows])
    return path


def write_parquet(path, rows):
    points, draws, classes, values = (list(column) for column in zip(*rows, strict=True))
    table = {"point": points, "draw": draws, "class": classes, "probability": [float(v) for v in values]}
    parquet.write_table(pa.table(table), path)
    return path
