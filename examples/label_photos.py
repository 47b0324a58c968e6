"""Images: from a folder of pictures to predictions, by commands alone.

What stands in `balent(…)` is what you would type. `answer` stands for the person who labels: it adds the column `label`
to ask.csv. The pictures are drawn here, and the backbone has random weights, so that nothing is downloaded: leave
`--features` out for photos.
"""

import csv
import os
import random
import shlex

from PIL import Image, ImageDraw

from balent.apps.cli import app

SHAPES = ("disc", "bar")


def picture(name, shape, rng):
    """A bright shape somewhere on a dark ground."""
    image = Image.new("RGB", (48, 48), tuple(rng.randrange(60) for _ in range(3)))
    x, y, colour = rng.randrange(16), rng.randrange(16), tuple(rng.randrange(150, 256) for _ in range(3))
    draw = ImageDraw.Draw(image)
    if shape == "disc":
        draw.ellipse((x, y, x + 30, y + 30), fill=colour)
    else:
        draw.rectangle((x, y, x + 5, y + 30), fill=colour)
    image.save(f"photos/{name}")


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
os.mkdir("photos")
truth = {f"{i:03d}.png": rng.choice(SHAPES) for i in range(120)}
for name, shape in truth.items():
    picture(name, shape, rng)

for _ in range(2):
    balent("ask photos --classes disc,bar --features random:resnet10 -k 20 -o ask.csv")
    answer(truth)
    balent("tell photos answers.csv --who ann")
balent("predict photos -o predictions.csv")
balent("status photos")
balent("export photos --format folders -o by-class")

with open("predictions.csv", encoding="utf-8", newline="") as file:
    right = [truth[row["id"]] == row["label"] for row in csv.DictReader(file)]
print(f"{sum(right)} of {len(right)} pictures are predicted rightly, after 40 labels")
