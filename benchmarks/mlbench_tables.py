"""Two tables of R's package mlbench as train.csv and test.csv for bench_gain.py, split as is customary.

    pip install pyreadr
    python benchmarks/mlbench_tables.py MLBENCH/data FOLDER

MLBENCH/data is where the package keeps Satellite.rda and LetterRecognition.rda (Debian: r-cran-mlbench, below
/usr/lib/R/site-library). FOLDER gets satellite/ and letterrecognition/.
"""

import sys
from pathlib import Path

import pyreadr

TABLES = {"satellite": ("Satellite", "classes", 4435), "letterrecognition": ("LetterRecognition", "lettr", 16_000)}

if __name__ == "__main__":
    source, folder = map(Path, sys.argv[1:])
    for name, (table, target, train) in TABLES.items():
        rows = pyreadr.read_r(source / f"{table}.rda")[table].rename(columns={target: "class"})
        (folder / name).mkdir(parents=True, exist_ok=True)
        rows[:train].to_csv(folder / name / "train.csv", index=False)
        rows[train:].to_csv(folder / name / "test.csv", index=False)
