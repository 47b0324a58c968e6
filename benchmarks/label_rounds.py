"""From a folder of unlabelled images to a classifier by commands alone: how good, how long, how much memory?

    python benchmarks/label_rounds.py                       3,000 drawings of five shapes, five rounds of 20
    python benchmarks/label_rounds.py --data FOLDER         your own: a folder of images per class

An oracle stands for the person: it reads ask.csv and writes answers.csv. Everything else is `balent ask`, `tell`,
`predict` and `status`, each in a process of its own. Images have neutral names in one folder.
"""

import argparse
import csv
import json
import random
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

IMAGES, SIDE = 3000, 128
SHAPES = ("circle", "square", "triangle", "cross", "ring")
BALENT = [sys.executable, "-c", "from balent.apps.cli import app; app()"]


def drawings(folder: Path, number: int) -> dict[str, str]:
    """Shapes of any colour, size and place on noise; the class of each file."""
    from PIL import Image, ImageDraw

    rng, truth = random.Random(0), {}
    for i in range(number):
        shape = SHAPES[i % len(SHAPES)]
        image = Image.effect_noise((SIDE, SIDE), 60).convert("RGB")
        tint = Image.new("RGB", image.size, _colour(rng))
        image = Image.blend(image, tint, 0.4)
        size, x, y = rng.randint(30, 80), rng.randint(0, SIDE - 80), rng.randint(0, SIDE - 80)
        _draw(ImageDraw.Draw(image), shape, (x, y, x + size, y + size), _colour(rng))
        truth[f"{i:05d}.png"] = shape
        image.save(folder / f"{i:05d}.png")
    return truth


def _colour(rng: random.Random) -> tuple[int, int, int]:
    return rng.randrange(256), rng.randrange(256), rng.randrange(256)


def _draw(on, shape: str, box: tuple[int, int, int, int], colour: tuple[int, int, int]) -> None:
    left, top, right, bottom = box
    third, middle = (right - left) // 3, (left + right) // 2
    if shape == "circle":
        on.ellipse(box, fill=colour)
    elif shape == "square":
        on.rectangle(box, fill=colour)
    elif shape == "triangle":
        on.polygon([(middle, top), (right, bottom), (left, bottom)], fill=colour)
    elif shape == "ring":
        on.ellipse(box, outline=colour, width=max(3, third // 2))
    else:
        on.rectangle((left + third, top, right - third, bottom), fill=colour)
        on.rectangle((left, top + third, right, bottom - third), fill=colour)


def copies(folder: Path, source: Path, number: int) -> dict[str, str]:
    """Images of a folder per class, under neutral names, in random order."""
    files = sorted(path for path in source.rglob("*") if path.suffix.lower() in (".png", ".jpg", ".jpeg"))
    random.Random(0).shuffle(files)
    truth = {}
    for i, path in enumerate(files[:number]):
        name = f"{i:05d}{path.suffix.lower()}"
        truth[name] = path.parent.name
        shutil.copyfile(path, folder / name)
    return truth


def balent(*words: object) -> str:
    return subprocess.run([*BALENT, *map(str, words)], check=True, stdout=subprocess.PIPE, text=True).stdout


def oracle(asked: Path, answers: Path, truth: dict[str, str]) -> None:
    with asked.open(encoding="utf-8", newline="") as file:
        ids = [row["id"] for row in csv.DictReader(file)]
    with answers.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([["id", "label"], *([id, truth[id]] for id in ids)])


def accuracy(predictions: Path, truth: dict[str, str]) -> float:
    with predictions.open(encoding="utf-8", newline="") as file:
        rows = [*csv.DictReader(file)]
    assert len(rows) == len(truth)
    return sum(truth[row["id"]] == row["label"] for row in rows) / len(rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, help="a folder of images per class, instead of drawings")
    parser.add_argument("--images", type=int, default=IMAGES)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("-k", type=int, default=20)
    parser.add_argument("--features", help="the backbone, as for balent ask")
    wanted = parser.parse_args()
    with tempfile.TemporaryDirectory() as place:
        run(Path(place), wanted)


def run(place: Path, wanted: argparse.Namespace) -> None:
    photos, project = place / "photos", place / "photos.balent"
    photos.mkdir()
    truth = copies(photos, wanted.data, wanted.images) if wanted.data else drawings(photos, wanted.images)
    names = sorted(set(truth.values()))
    print(f"{len(truth)} images of {len(names)} classes, {wanted.rounds} rounds of {wanted.k}")
    settings = ["--classes", ",".join(names), *(["--features", wanted.features] if wanted.features else [])]
    begin = time.perf_counter()
    for number in range(wanted.rounds):
        start = time.perf_counter()
        balent("ask", photos, *(settings if number == 0 else ()), "-k", wanted.k, "-o", place / "ask.csv")
        oracle(place / "ask.csv", place / "answers.csv", truth)
        balent("tell", project, place / "answers.csv", "--who", "oracle")
        print(f"round {number + 1}: {time.perf_counter() - start:.1f} s for ask and tell", flush=True)
    start = time.perf_counter()
    balent("predict", project, "-o", place / "predictions.csv")
    seconds = time.perf_counter() - start
    status = json.loads(balent("status", project, "--json"))
    peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 2**20
    print(f"predict: {seconds:.1f} s")
    print(f"accuracy of predictions.csv on all items: {accuracy(place / 'predictions.csv', truth):.1%}")
    print(f"as the project shows it: {status['audit']['sentence']}")
    print(f"{(time.perf_counter() - begin) / 60:.1f} minutes in all; peak memory of a command {peak:.2f} GB")


if __name__ == "__main__":
    main()
