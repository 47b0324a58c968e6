"""Does the accuracy that a project shows hold?  Simulated projects, each with 400 labels, against a test set.

    python benchmarks/bench_audit.py --sets digits,cifar10-features --data FOLDER --out runs/audit.jsonl
    python benchmarks/bench_audit.py --out runs/audit.jsonl --table
    python benchmarks/bench_audit.py --table                                  our last runs, benchmarks/audit.jsonl

For each set and seed a project is made of at most 5,000 rows of features, and gets ten times 40 labels. Its interval
(95 %) is compared with the accuracy on the test set; beside it stand the two estimates that people use: 20 % of the
chosen labels held out, and the model's mean confidence. Lines go to a file as they come, and what the file has is not
run again. One thread per process: OMP_NUM_THREADS=1.
"""

import argparse
import json
import tempfile
from itertools import product
from pathlib import Path

import numpy as np
import torch

from balent import Project
from balent.data.sources import load
from balent.kernels.hashing import mixed
from balent.project.asking import View

POOL, TEST = 5000, 4000
ROUNDS, PER_ROUND = 10, 40
OURS = Path(__file__).with_name("audit.jsonl")
HELD_OUT = 5  # every which label, where chosen labels are held out


def some(x: torch.Tensor, y: torch.Tensor, most: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    at = mixed(seed, torch.arange(len(y))).argsort()[:most]
    return torch.as_tensor(x[at]).flatten(1).float().numpy(), y[at].numpy()


def simulated(name: str, seed: int, folder: Path | None) -> dict[str, float]:
    """One project, from no label to 400."""
    data = load(name, folder)
    rows, truth = some(data.x_train, data.y_train, POOL, seed)
    test, test_truth = some(data.x_test, data.y_test, TEST, 1)
    names = [str(c) for c in range(data.classes)]
    with tempfile.TemporaryDirectory() as place:
        np.save(Path(place) / "rows.npy", rows)
        project = Project.create(Path(place) / "p.balent", Path(place) / "rows.npy", classes=names, seed=seed)
        for _ in range(ROUNDS):
            asked = project.ask(PER_ROUND)
            project.tell({item.id: names[truth[int(item.id)]] for item in asked})
        accuracy = project.status()["accuracy"]
        view = View(project)
        right = float((view.model.probabilities(test).argmax(1) == test_truth).mean())
        return {"test": right, **accuracy, "held_out": held_out(project, view), "confidence": confidence(view)}


def held_out(project: Project, view: View) -> float:
    """The usual way: of the labels that the strategy chose, a fifth is not trained on."""
    chosen = [n for n in view.labels if not project.state.is_audit(n)]
    rows = [view.row[n] for n in chosen[::HELD_OUT]]
    said = view.model.without(rows, rows).argmax(1)
    return float(np.mean([c == view.model.pool.labels[row] for c, row in zip(said, rows, strict=True)]))


def confidence(view: View) -> float:
    """How sure the model is of the items that have no label."""
    left = [row for row in range(len(view.numbers)) if row not in view.model.pool.labels]
    return float(view.model.probabilities(view.model.pool.rows[left]).max(1).mean())


def table(lines: list[dict]) -> None:
    print(f"{'':>24s}  projects  interval holds   points above the test accuracy: audit   held out   confidence")
    for name in [*dict.fromkeys(line["set"] for line in lines), None]:
        rows = [line for line in lines if name in (None, line["set"])]
        holds = sum(line["low"] <= line["test"] <= line["high"] for line in rows)
        apart = {
            "audit": [100 * (line["right"] / line["of"] - line["test"]) for line in rows],
            "held out": [100 * (line["held_out"] - line["test"]) for line in rows],
            "confidence": [100 * (line["confidence"] - line["test"]) for line in rows],
        }
        shown = "".join(f"  {np.mean(v):+6.1f} ± {np.std(v):4.1f}" for v in apart.values())
        print(f"{name or 'all':>24s}  {len(rows):8d}  {holds:14d} {shown}")


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, help="the folder with data sets")
    asked.add_argument("--sets", default="digits")
    asked.add_argument("--seeds", type=int, default=50)
    asked.add_argument("--out", type=Path)
    asked.add_argument("--table", action="store_true")
    args = asked.parse_args()
    args.out = args.out or (OURS if args.table else Path("runs/audit.jsonl"))
    if args.table and not args.out.exists():
        asked.error(f"{args.out} does not exist; run it first, without --table")
    lines = [json.loads(line) for line in args.out.read_text().splitlines()] if args.out.exists() else []
    if args.table:
        return table(lines)
    args.out.parent.mkdir(parents=True, exist_ok=True)
    done = {(line["set"], line["seed"]) for line in lines}
    for seed, name in product(range(args.seeds), args.sets.split(",")):
        if (name, seed) not in done:
            line = {"set": name, "seed": seed, **simulated(name, seed, args.data)}
            with args.out.open("a") as file:
                file.write(json.dumps(line) + "\n")
            print(line, flush=True)
    return None


if __name__ == "__main__":
    main()
