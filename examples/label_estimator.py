"""A scikit-learn estimator in a labelling project: `--model FILE.py:FACTORY`, the rest by commands alone.

The factory gets the features [items, width] and the number of classes, and returns an estimator with `fit` and
`predict_proba`. It is called again when a class is added. `answer` stands for the person who labels.
"""

import csv
import random
import shlex
from pathlib import Path

import numpy as np

from balent.apps.cli import app

MODEL = """
from sklearn.ensemble import RandomForestClassifier


def forest(inputs, classes):
    return RandomForestClassifier(n_estimators=30, random_state=0)
"""


def answer(truth):
    """ask.csv with labels, as answers.csv."""
    with open("ask.csv", encoding="utf-8", newline="") as file:
        asked = [*csv.DictReader(file)]
    with open("answers.csv", "w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, [*asked[0], "label"])
        writer.writeheader()
        writer.writerows({**row, "label": truth[row["id"]]} for row in asked)


def balent(line):
    print(f"$ balent {line}", flush=True)
    if code := app(shlex.split(line), standalone_mode=False):
        raise SystemExit(code)


rng = random.Random(0)
points = np.array([[rng.uniform(-1, 1), rng.uniform(-1, 1)] for _ in range(200)], dtype=np.float32)
truth = {str(i): "in" if x * x + y * y < 0.6 else "out" for i, (x, y) in enumerate(points.tolist())}  # not linear
np.save("points.npy", points)
Path("models.py").write_text(MODEL, encoding="utf-8")

for _ in range(2):
    balent("ask points.npy --classes in,out --model models.py:forest -k 20 -o ask.csv")
    answer(truth)
    balent("tell points.npy answers.csv --who ann")
balent("predict points.npy -o predictions.csv")
balent("status points.npy")

with open("predictions.csv", encoding="utf-8", newline="") as file:
    right = [truth[row["id"]] == row["label"] for row in csv.DictReader(file)]
print(f"{sum(right)} of {len(right)} points are predicted rightly, after 40 labels")
