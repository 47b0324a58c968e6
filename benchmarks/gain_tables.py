"""What the lines of bench_gain.py show, as tables in Markdown.

    python benchmarks/gain_tables.py runs/gain.jsonl                 gain of auto: on random by count, on others by area
    python benchmarks/gain_tables.py runs/gain.jsonl --of badge      the same for another strategy
    python benchmarks/gain_tables.py runs/gain.jsonl --saved         labels that reach what random reaches
    python benchmarks/gain_tables.py runs/gain.jsonl --matrix        ahead, level, behind: each strategy against each
    python benchmarks/gain_tables.py runs/heads.jsonl --heads        heads on random labels

Gains are points of accuracy on the test set: mean ± half a 95 % t interval over seeds, paired by seed. The area is the
mean over the counts. A bold gain is negative beyond chance: p ≤ 0.05 after Holm's correction over the counts of its
row.
"""

import argparse
import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np

from balent.report.significance import ALPHA, holm, interval, p_value

SAVED_AT = (10, 30)  # labels per class

Case = tuple[str, str]  # set, head
Curves = dict[
    tuple[str, str, str, int], dict[int, float]
]  # set, head, strategy, seed → labels per class → accuracy in %


def lines(path: Path) -> list[dict]:
    with (gzip.open if path.suffix == ".gz" else open)(path, "rt") as file:
        return [json.loads(line) for line in file]


def curves(found: Iterable[dict]) -> Curves:
    made: Curves = {}
    for line in found:
        key = line["set"], line["head"], called(line["strategy"]), line["seed"]
        made.setdefault(key, {})[line["per_class"]] = 100 * line["accuracy"]
    return made


def called(strategy: str) -> str:
    """A strategy from a file is called by its class: `benchmarks/typiclust.py:TypiClust` is typiclust."""
    return strategy.rpartition(":")[2].lower() if ".py:" in strategy else strategy


def distinct(found: Curves, *fields: int) -> list[tuple]:
    return list(dict.fromkeys(tuple(key[i] for i in fields) for key in found))


def gains(found: Curves, case: Case, of: str, on: str) -> np.ndarray:
    """[seeds, counts]: accuracy of one strategy less that of another, where both were run."""
    seeds = [key[3] for key in found if key[:3] == (*case, of) and (*case, on, key[3]) in found]
    pairs = [(found[*case, of, seed], found[*case, on, seed]) for seed in sorted(seeds)]
    return np.array([[mine[n] - theirs[n] for n in sorted(mine)] for mine, theirs in pairs])


def row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def table(head: list[str], rows: Iterable[Iterable[str]]) -> None:
    print("\n".join([row(head), "|" + " --- |" * len(head), *map(row, rows)]), end="\n\n")


def mean(values: np.ndarray, bold: bool = False) -> str:
    text = f"{values.mean():+.1f}".replace("-", "−")
    if len(values) > 1:
        low, high = interval(values)
        text += f" ± {(high - low) / 2:.1f}"
    return f"**{text}**" if bold else text


def behind(gained: np.ndarray) -> np.ndarray:
    """Which counts are negative beyond chance."""
    if len(gained) < 2:
        return np.zeros(gained.shape[1], dtype=bool)
    p = [step.p for step in holm([p_value(column) for column in gained.T])]
    return (np.array(p) <= ALPHA) & (gained.mean(0) < 0)


def on_random(found: Curves, of: str) -> None:
    counts = sorted({n for curve in found.values() for n in curve})
    rows = []
    for case in distinct(found, 0, 1):
        gained = gains(found, case, of, "random")
        if len(gained):
            cells = [mean(column, bad) for column, bad in zip(gained.T, behind(gained), strict=True)]
            cells += [""] * (len(counts) - len(cells))
            rows.append([f"{', '.join(case)} ({len(gained)})", *cells, mean(gained.mean(1))])
    table(["set, head (seeds)", *map(str, counts), "area"], rows)


def on_others(found: Curves, of: str) -> None:
    others = [name for (name,) in distinct(found, 2) if name not in (of, "random")]

    def cell(case: Case, other: str) -> str:
        gained = gains(found, case, of, other)
        return f"{mean(gained.mean(1))} ({len(gained)})" if len(gained) else ""

    cases = distinct(found, 0, 1)
    table(["set, head", *others], ([", ".join(case), *(cell(case, other) for other in others)] for case in cases))


def matrix(found: Curves, _: str) -> None:
    """Of each pair: on how many sets and heads the row's area is ahead of the column's beyond chance, level, behind.

    Holm's correction goes over the pairs of one set and head.
    """
    names = [name for (name,) in distinct(found, 2)]
    counted = {(a, b): [0, 0, 0] for a in names for b in names if a != b}
    for case in distinct(found, 0, 1):
        areas = {pair: gains(found, case, *pair) for pair in counted if pair[0] < pair[1]}
        areas = {pair: gained.mean(1) for pair, gained in areas.items() if len(gained) > 1}
        steps = holm([p_value(area) for area in areas.values()])
        for (pair, area), step in zip(areas.items(), steps, strict=True):
            side = 1 if step.p > ALPHA else 0 if area.mean() > 0 else 2
            counted[pair][side] += 1
            counted[pair[::-1]][2 - side] += 1
    cells = {pair: "–".join(map(str, three)) for pair, three in counted.items()}
    table(["ahead–level–behind", *names], ([a, *(cells.get((a, b), "") for b in names)] for a in names))


def saved(found: Curves, of: str) -> None:
    """Labels per class at which a strategy reaches random's mean accuracy at some count, between counts by a line."""
    rows = []
    for case in distinct(found, 0, 1):
        mine, theirs = ([c for key, c in found.items() if key[:3] == (*case, name)] for name in (of, "random"))
        if mine and theirs:
            levels = [(n, float(np.mean([c[n] for c in theirs]))) for n in SAVED_AT if n in theirs[0]]
            cells = [needed(mine, level, n) for n, level in levels]
            rows.append([", ".join(case), *cells, *[""] * (len(SAVED_AT) - len(cells))])
    table(["set, head", *(f"instead of {n}" for n in SAVED_AT)], rows)


def needed(mine: list[dict[int, float]], level: float, n: int) -> str:
    """Mean over seeds ± half an interval, and the share of labels saved; > where a seed never gets there."""
    at = np.array([crossing(sorted(curve.items()), level) for curve in mine])
    low, high = interval(at) if len(at) > 1 else (at[0], at[0])
    never = "> " if any(max(curve.values()) < level for curve in mine) else ""
    return f"{never}{at.mean():.1f} ± {(high - low) / 2:.1f} ({at.mean() / n - 1:+.0%})".replace("-", "−").replace(
        "%", " %"
    )


def crossing(curve: list[tuple[int, float]], level: float) -> float:
    reached = np.maximum.accumulate([accuracy for _, accuracy in curve])
    return float(np.interp(level, reached, [n for n, _ in curve]))


def heads(found: list[dict]) -> None:
    """Accuracy in %, NLL, calibration error in %, CPU seconds to fit and to predict the test set; on random labels."""
    by: dict[tuple, list[dict]] = {}
    for line in found:
        if line["strategy"] == "random":
            by.setdefault((line["set"], line["per_class"], line["head"]), []).append(line)
    names = list(dict.fromkeys(key[2] for key in by))
    rows = []
    for name, n in dict.fromkeys(key[:2] for key in by):
        here = [by.get((name, n, head), []) for head in names]
        rows.append([f"{name}, {n} ({max(map(len, here))})", *map(qualities, here)])
    table(["set, labels per class (seeds)", *names], rows)


def qualities(found: list[dict]) -> str:
    if not found:
        return ""
    accuracy, nll, ece, fit = (np.mean([line[key] for line in found]) for key in ("accuracy", "nll", "ece", "fit"))
    return f"{100 * accuracy:.1f} / {nll:.2f} / {100 * ece:.0f} / {fit:.2f}"


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("files", type=Path, nargs="+")
    asked.add_argument("--of", default="auto")
    for choice in ("saved", "matrix", "heads"):
        asked.add_argument(f"--{choice}", action="store_true")
    args = asked.parse_args()
    found = [line for path in args.files for line in lines(path)]
    shown: list[Callable] = [saved] if args.saved else [matrix] if args.matrix else [on_random, on_others]
    if args.heads:
        heads(found)
    else:
        for show in shown:
            show(curves(found), args.of)


if __name__ == "__main__":
    main()
