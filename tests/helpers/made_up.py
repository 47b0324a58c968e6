"""Made-up records whose truth is known: a strategy of speed c needs 1/c of random's labels at every accuracy."""

import base64
import json
import struct
import zlib
from pathlib import Path

import numpy as np

from balent.report.load import Run

LABELS = np.arange(20, 420, 20)


def accuracy(labels):
    return 0.95 - 0.75 * np.exp(-labels / 80)


def png(pixels):
    """A grey image [rows, columns] of bytes, as base64."""
    rows = b"".join(b"\0" + row.tobytes() for row in pixels.astype(np.uint8))
    parts = [
        (b"IHDR", struct.pack(">IIBBBBB", *pixels.shape[::-1], 8, 0, 0, 0, 0)),
        (b"IDAT", zlib.compress(rows)),
        (b"IEND", b""),
    ]
    chunks = (struct.pack(">I", len(d)) + k + d + struct.pack(">I", zlib.crc32(k + d)) for k, d in parts)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(chunks)).decode()


def heights(strategy, seed, speed, noise, labels=LABELS):
    """Accuracies of one run. Seeds differ in difficulty, which their strategies share; `noise` is of one evaluation."""
    hard = np.exp(0.2 * np.random.default_rng(seed).standard_normal())
    rng = np.random.default_rng([seed, *map(ord, strategy)])
    own = speed * np.exp(4 * noise * rng.standard_normal())
    return np.clip(accuracy(labels * own / hard) + noise * rng.standard_normal(len(labels)), 0, 1)


def records(
    strategy="random",
    seed=0,
    speed=1.0,
    *,
    noise=0.0,
    labels=LABELS,
    experiment="digits",
    images=None,
    spec=None,
    **more,
):
    """One run as balent run records it."""
    rng = np.random.default_rng(seed)
    settings = {"data": experiment, "draws": 100, **(spec or {}), "strategy": strategy, "seed": seed}
    made = []
    for i, (n, height) in enumerate(zip(labels, heights(strategy, seed, speed, noise, labels), strict=True)):
        last = i == len(labels) - 1
        picks = [] if last else rng.choice(len(images) if images else 1000, 20, replace=False).tolist()
        made.append({
            "format": 1, "balent": "0.1.0", "torch": "2.13.0", "experiment": experiment,
            "strategy": strategy, "seed": seed, "round": i, "labels": int(n), "accuracy": float(height),
            "nll": float(1.6 * (1 - height)),
            "brier": float(1.2 * (1 - height)), "ece": float(0.2 * (1 - height)), "picks": picks,
            "scores": sorted((float(s) for s in rng.gamma(2.0, 1.0, len(picks))), reverse=True),
            "pick_labels": [p % 10 for p in picks], "epistemic": None if last else float(0.5 * speed * (1.05 - height)),
            "aleatoric": None if last else float(0.9 / speed * (1.1 - height)), "draws": 100,
            "seconds": {"train": 0.4, "evaluate": 0.05, "score": 0.1},
            "spec": settings,
            **({"thumbnails": [images[p] for p in picks]} if images else {}), **more,
        })  # fmt: skip
    return made


def write(folder, made):
    """As balent run lays them out."""
    first = made[0]
    path = (
        folder / first["experiment"] / first["strategy"].replace(":", "%3A") / f"seed-{first['seed']}" / "records.jsonl"
    )
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(record) + "\n" for record in made), encoding="utf-8")
    return path


def run(strategy="random", seed=0, speed=1.0, noise=0.0, labels=LABELS):
    """A run that was never on disk."""
    made = zip(labels.tolist(), heights(strategy, seed, speed, noise, labels).tolist(), strict=True)
    return Run(
        "digits",
        strategy,
        seed,
        tuple({"round": i, "labels": n, "accuracy": h} for i, (n, h) in enumerate(made)),
        Path(),
    )
