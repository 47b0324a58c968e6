"""Is a strategy ahead of random, from the first labels on?  Accuracy by labels per class, paired by seed.

For each set, head, strategy and seed one Learner is asked up to 1, 2, 3, 5, 10, 20, 30 and 50 labels per class (10 if
there are more than 50 classes), and its head is tested at each. `auto` and TypiClust need no model, and begin with
their own first batch; all others begin with uniformly random points. Lines go to a file as they are found, and what the
file has is not run again.

    python benchmarks/bench_gain.py --data FOLDER --sets digits,mnist,cifar10-features --out runs/gain.jsonl
    python benchmarks/bench_gain.py --k 1                      one point per question, up to 10 per class
    python benchmarks/bench_gain.py --sets cifar100-features --per-class 10,20,30 --out runs/large.jsonl   1,000 at once
    python benchmarks/bench_gain.py --start auto               all strategies begin with the first batch of auto
    python benchmarks/bench_gain.py --start random             all, auto too, begin with random points
    python docs/gain_tables.py on_random runs/gain.jsonl     what the file shows; other tables: see there

Sets: gain_sets.py. Heads: gain_heads.py. Long: give each process its own --sets, or --first and --seeds, and one
thread (OMP_NUM_THREADS=1).
"""

import argparse
import json
import math
import re
import time
from collections.abc import Iterator, Sequence
from itertools import product
from pathlib import Path

import torch
from gain_heads import head
from gain_sets import data

import balent
from balent.data.sources import Data
from balent.simulation.evaluation import evaluation, predictions

PER_CLASS = (1, 2, 3, 5, 10, 20, 30, 50)
MANY, STOP = 50, 10  # with more classes than that, or in small steps, this many labels per class are the end
DRAWS = 100
STRATEGIES = "auto,random,margin,badge,power_bald,balentacq,entropy,bald,core_set,benchmarks/typiclust.py:TypiClust"
HEADS = "logistic,mc_dropout"
KEYS = ("set", "head", "strategy", "seed", "k", "start")


def counts(d: Data, k: int, per_class: Sequence[int] = ()) -> list[int]:
    most = STOP if not per_class and (d.classes > MANY or 0 < k < d.classes) else math.inf
    return [n * d.classes for n in per_class or PER_CLASS if n <= most and n * d.classes <= len(d.y_train) // 2]


def learner(d: Data, predictor: str, strategy: str, seed: int, start: str) -> balent.Learner:
    """`start="auto"` gives any strategy the first batch of `auto`; `start="random"` gives `auto` one at random."""
    made, quiet = head(predictor, d, seed), {"seed": seed, "draws": DRAWS, "say": lambda _: None}
    if start == "auto" and strategy != "auto":
        first = balent.Learner(made, d.x_train, "auto", **quiet).ask(d.classes).indices
        return balent.Learner(made, d.x_train, strategy, start=first, **quiet)
    return balent.Learner(made, d.x_train, strategy, start=start or "auto", **quiet)


def curve(
    d: Data, predictor: str, strategy: str, seed: int, k: int, start: str, per_class: Sequence[int]
) -> Iterator[dict[str, float]]:
    """One line for each count of labels; seconds are those of the processor, so that other work does not count."""
    driven = learner(d, predictor, strategy, seed, start)
    for count in counts(d, k, per_class):
        begun = time.process_time()
        while len(driven.told) < count:
            wanted = count - len(driven.told)
            picks = driven.ask(min(k, wanted) if k and driven.told else wanted)
            driven.tell(picks.indices, d.y_train[picks.indices])
        asked, begun = time.process_time() - begun, time.process_time()
        driven.fit()
        p = predictions(driven.predictor.sample(40, seed=seed), d.x_test)
        fitted = time.process_time() - begun
        measured = evaluation(p, d.y_test)
        yield {"labels": count, "per_class": count // d.classes, "ask": asked, "fit": fitted, **measured}


def lines(path: Path) -> list[dict]:
    return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--data", type=Path, help="the folder with data sets")
    asked.add_argument("--sets", default="digits")
    asked.add_argument("--heads", default=HEADS)
    asked.add_argument("--strategies", default=STRATEGIES)
    asked.add_argument("--seeds", type=int, default=10)
    asked.add_argument("--first", type=int, default=0, help="the first seed")
    asked.add_argument("--k", type=int, default=0, help="points per question; 0: up to the next count at once")
    asked.add_argument("--per-class", default="", help="counts of labels per class; they go to a file of their own")
    asked.add_argument("--start", default="", choices=["", "auto", "random"])
    asked.add_argument("--out", type=Path, default=Path("runs/gain.jsonl"))
    args = asked.parse_args()
    done = {tuple(line[key] for key in KEYS) for line in lines(args.out) if line["last"]}
    args.out.parent.mkdir(parents=True, exist_ok=True)
    per_class = [int(n) for n in args.per_class.split(",") if n]
    kinds = args.heads.split(","), re.findall(r"[^,(]+(?:\([^)]*\))?", args.strategies)
    for seed, name in product(range(args.first, args.first + args.seeds), args.sets.split(",")):
        wanted = [(name, *kind, seed, args.k, args.start) for kind in product(*kinds)]
        missing = [run for run in wanted if run not in done]
        d = data(name, args.data) if missing else None
        for run in missing:
            torch.manual_seed(seed)
            rows = list(curve(d, *run[1:], per_class))
            rows = [{**dict(zip(KEYS, run, strict=True)), **row} for row in rows]
            with args.out.open("a") as file:
                file.write("".join(json.dumps(row | {"last": row is rows[-1]}) + "\n" for row in rows))
            print(*run, [round(100 * row["accuracy"], 1) for row in rows], flush=True)


if __name__ == "__main__":
    main()
