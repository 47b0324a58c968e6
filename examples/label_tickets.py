"""Texts: from a CSV of tickets to predictions, by commands alone.

What stands in `balent(…)` is what you would type. `answer` stands for the person who labels: it adds the column `label`
to ask.csv. The texts are made up: each has two words of its topic among six that say nothing.
"""

import csv
import random
import shlex

from balent.apps.cli import app

TOPICS = {
    "payment": ["invoice", "card", "refund", "charged", "twice", "bank", "receipt", "price"],
    "delivery": ["parcel", "late", "courier", "address", "package", "lost", "tracking", "box"],
    "login": ["password", "account", "email", "reset", "locked", "code", "sign", "user"],
}
COMMON = ["please", "help", "me", "with", "my", "order", "since", "yesterday", "nobody", "answers", "thank", "you"]


def ticket(rng):
    """A text and its topic."""
    topic = rng.choice([*TOPICS])
    words = rng.sample(COMMON, 6) + rng.sample(TOPICS[topic], 2)
    rng.shuffle(words)
    return " ".join(words), topic


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
tickets = {f"T{i:04d}": ticket(rng) for i in range(300)}
truth = {number: topic for number, (_, topic) in tickets.items()}
with open("tickets.csv", "w", encoding="utf-8", newline="") as file:
    csv.writer(file).writerows([("number", "body"), *((number, body) for number, (body, _) in tickets.items())])

for _ in range(4):
    balent("ask tickets.csv --text body --id number --classes payment,delivery,login -k 25 -o ask.csv")
    answer(truth)
    balent("tell tickets.csv answers.csv --who ann")
balent("predict tickets.csv -o predictions.csv")
balent("status tickets.csv")
balent("export tickets.csv --format doccano -o labelled.jsonl")

with open("predictions.csv", encoding="utf-8", newline="") as file:
    right = [truth[row["id"]] == row["label"] for row in csv.DictReader(file)]
print(f"{sum(right)} of {len(right)} tickets are predicted rightly, after 100 labels")
