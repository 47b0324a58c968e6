"""Rows of a table: numbers and categories, some of them labelled already, by commands alone.

What stands in `balent(…)` is what you would type. `answer` stands for the person who labels. Rows with a value in the
target column are labelled from the start. The customers are made up: who pays late or calls often leaves.
"""

import csv
import random
import shlex

from balent.apps.cli import app

COLUMNS = ["customer", "months", "calls", "plan", "late", "churn"]


def customer(rng):
    """A row without its number, and whether the customer leaves."""
    calls, late = rng.randrange(10), rng.choice(["yes", "no"])
    return [
        rng.randrange(1, 60),
        calls,
        rng.choice(["S", "M", "L"]),
        late,
    ], "yes" if calls > 5 or late == "yes" else "no"


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


rng, truth = random.Random(0), {}
with open("customers.csv", "w", encoding="utf-8", newline="") as file:
    writer = csv.writer(file)
    writer.writerow(COLUMNS)
    for i in range(300):
        row, leaves = customer(rng)
        truth[f"C{i:03d}"] = leaves
        writer.writerow([f"C{i:03d}", *row, leaves if i < 10 else ""])  # ten are known

for _ in range(3):
    balent("ask customers.csv --id customer --target churn -k 20 -o ask.csv")
    answer(truth)
    balent("tell customers.csv answers.csv --who ann")
balent("predict customers.csv -o predictions.csv")
balent("status customers.csv")
balent("export customers.csv --format jsonl -o labelled.jsonl")

with open("predictions.csv", encoding="utf-8", newline="") as file:
    right = [truth[row["id"]] == row["label"] for row in csv.DictReader(file)]
print(f"{sum(right)} of {len(right)} customers are predicted rightly, after 70 labels")
