"""What the lines of benchmarks/bench_gain.py show, as tables in Markdown.

    python docs/gain_tables.py on_random results/gain.jsonl.gz          gain of auto on random by labels per class
    python docs/gain_tables.py on_others results/gain.jsonl.gz          its area minus that of other strategies
    python docs/gain_tables.py matrix results/gain.jsonl.gz             ahead, level, behind: each against each
    python docs/gain_tables.py ranks results/gain.jsonl.gz              mean ranks, with a critical difference
    python docs/gain_tables.py saved results/gain.jsonl.gz              labels that reach what random reaches
    python docs/gain_tables.py shares results/oracle.jsonl.gz           how much of an oracle's gain
    python docs/gain_tables.py parts results/gain.jsonl.gz results/parts.jsonl.gz     auto with parts of it changed
    python docs/gain_tables.py heads results/heads.jsonl.gz             heads on random labels

`head=logistic`, `sets=usual` (or `faulty`), `of=badge` and `at=1,5,50` (counts) choose. Gains are points of accuracy
on the test set: mean ± half a 95 % t interval over seeds, paired by seed. The area is the mean over the counts. A bold
gain is negative beyond chance: p ≤ 0.05 after Holm's correction over the counts of its row.
"""

import sys
from collections.abc import Callable, Iterable
from pathlib import Path

import numpy as np
from gain_curves import Case, Curve, Curves, beyond_chance, lines, titled

from balent.report.significance import ALPHA, holm, interval, p_value

SAVED_AT = (10, 30)  # labels per class
PARTS = {  # strategy, head → what is different from auto with Logistic
    ("auto, start random", "logistic"): "first batch at random",
    ("herding:benchmarks/flat.py:flat(balance=0), start auto", "logistic"): "no weights: coverage alone",
    ("herding:margin(balance=0), start auto", "logistic"): "no balance of classes",
    ("herding:margin(balance=1), start auto", "logistic"): "full balance of classes",
    ("herding:margin(balance=1), start auto", "mc_dropout"): "the same, of auto with MC dropout",
    ("margin, start auto", "logistic"): "no coverage: margin after the same first batch",
    ("auto", "plain"): "head without neighbours",
}
NEMENYI = {2: 1.960, 3: 2.343, 4: 2.569, 5: 2.728, 6: 2.850, 7: 2.949, 8: 3.031, 9: 3.102, 10: 3.164}  # Demšar (2006)


def table(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(head)
    made = [f"| {' | '.join(cells)} |" for cells in (head, *rows)]
    return "\n".join([made[0], "|" + " --- |" * len(head), *made[1:]]) + "\n"


def mean(values: np.ndarray, bold: bool = False) -> str:
    text = f"{values.mean():+.1f}".replace("-", "−")
    if len(values) > 1:
        low, high = interval(values)
        text += f" ± {(high - low) / 2:.1f}"
    return f"**{text}**" if bold else text


def on_random(found: Curves, of: str = "auto", at: str = "") -> str:
    counts = [int(n) for n in at.split(",") if n] or found.counts
    rows = []
    for case in found.cases:
        gained = found.gains(case, of, "random")
        if len(gained):
            bad = beyond_chance(gained) & (gained.mean(0) < 0)
            by_count = dict(zip(found.counts, map(mean, gained.T, bad), strict=False))
            cells = [by_count.get(n, "") for n in counts]
            rows.append([f"{titled(case)} ({len(gained)})", *cells, mean(gained.mean(1))])
    return table(["set, head (seeds)", *map(str, counts), "area"], rows)


def on_others(found: Curves, of: str = "auto") -> str:
    others = [name for name in found.strategies if name not in (of, "random")]

    def cell(case: Case, other: str) -> str:
        gained = found.gains(case, of, other)
        return f"{mean(gained.mean(1))} ({len(gained)})" if len(gained) else ""

    return table(["set, head", *others], ([titled(case), *(cell(case, o) for o in others)] for case in found.cases))


def matrix(found: Curves) -> str:
    """Of each pair: on how many sets and heads the row's area is ahead of the column's beyond chance, level, behind.

    Holm's correction goes over the pairs of one set and head.
    """
    names = found.strategies
    counted = {(a, b): [0, 0, 0] for a in names for b in names if a != b}
    for case in found.cases:
        areas = {pair: found.gains(case, *pair) for pair in counted if pair[0] < pair[1]}
        areas = {pair: gained.mean(1) for pair, gained in areas.items() if len(gained) > 1}
        steps = holm([p_value(area) for area in areas.values()])
        for (pair, area), step in zip(areas.items(), steps, strict=True):
            side = 1 if step.p > ALPHA else 0 if area.mean() > 0 else 2
            counted[pair][side] += 1
            counted[pair[::-1]][2 - side] += 1
    cells = {pair: "–".join(map(str, three)) for pair, three in counted.items()}
    return table(["ahead–level–behind", *names], ([a, *(cells.get((a, b), "") for b in names)] for a in names))


def ranks(found: Curves) -> str:
    """Mean ranks of the strategies that were run on all sets, 1 the best area; Nemenyi's critical difference."""
    names = [name for name in found.strategies if all(found.of(case, name) for case in found.cases)]
    complete = np.array([[_area(found, case, name) for name in names] for case in found.cases])
    placed = (-complete).argsort(1).argsort(1) + 1  # areas hardly tie
    means = placed.mean(0)
    width = NEMENYI[len(names)] * np.sqrt(len(names) * (len(names) + 1) / (6 * len(complete)))
    rows = sorted(zip(means, names, strict=True))
    shown = table(["strategy", "mean rank"], ([name, f"{rank:.2f}"] for rank, name in rows))
    return f"{shown}\nCritical difference: {width:.2f} ({len(complete)} sets, {len(names)} strategies).\n"


def _area(found: Curves, case: Case, name: str) -> float:
    return float(np.mean([list(curve.values()) for curve in found.of(case, name).values()]))


def saved(found: Curves, of: str = "auto") -> str:
    """Labels per class at which a strategy reaches random's mean accuracy at some count, between counts by a line."""
    rows = []
    for case in found.cases:
        mine, theirs = (list(found.of(case, name).values()) for name in (of, "random"))
        if mine and theirs:
            levels = [(n, float(np.mean([c[n] for c in theirs]))) for n in SAVED_AT if n in theirs[0]]
            cells = [needed(mine, level, n) for n, level in levels]
            rows.append([titled(case), *cells, *[""] * (len(SAVED_AT) - len(cells))])
    return table(["set, head", *(f"instead of {n}" for n in SAVED_AT)], rows)


def needed(mine: list[Curve], level: float, n: int) -> str:
    """Mean over seeds ± half an interval, and the share of labels saved; > where a seed never gets there."""
    at = np.array([crossing(sorted(curve.items()), level) for curve in mine])
    low, high = interval(at) if len(at) > 1 else (at[0], at[0])
    never = "> " if any(max(curve.values()) < level for curve in mine) else ""
    text = f"{never}{at.mean():.1f} ± {(high - low) / 2:.1f} ({at.mean() / n - 1:+.0%})"
    return text.replace("-", "−").replace("%", " %")


def crossing(curve: list[tuple[int, float]], level: float) -> float:
    reached = np.maximum.accumulate([accuracy for _, accuracy in curve])
    return float(np.interp(level, reached, [n for n, _ in curve]))


def shares(found: Curves) -> str:
    """Of the gain of an oracle on random: the share that each strategy has, by labels per class; means over seeds."""
    found = Curves({key: curve for key, curve in found.found.items() if key[3] in found.of(key[:2], "oracle")})
    rows = []
    for case in found.cases:
        possible = found.gains(case, "oracle", "random").mean(0)
        for name in found.strategies:
            if name not in ("oracle", "random") and len(gained := found.gains(case, name, "random")):
                cells = [f"{part:.0%}".replace("%", " %").replace("-", "−") for part in gained.mean(0) / possible]
                rows.append([titled(case), name, *cells])
        rows.append([titled(case), "oracle, points on random", *(f"{gain:+.1f}" for gain in possible)])
    return table(["set, head", "strategy", *map(str, found.counts)], rows)


def parts(found: Curves) -> str:
    """The area of auto with a part of it changed, minus that of auto as it is."""
    sets = [case[0] for case in found.cases if case[1] == "logistic"]

    def cell(name: str, strategy: str, head: str) -> str:
        whole = found.of((name, "mc_dropout" if head == "mc_dropout" else "logistic"), "auto")
        other = found.of((name, head), strategy)
        both = sorted(whole.keys() & other.keys())
        gained = [np.mean([other[seed][n] - whole[seed][n] for n in whole[seed]]) for seed in both]
        return f"{mean(np.array(gained))} ({len(both)})" if both else ""

    used = [name for name in sets if any(cell(name, *part) for part in PARTS)]
    heads = [titled((name, "")).removesuffix(", ") for name in used]
    return table(["changed", *heads], ([said, *(cell(name, *part) for name in used)] for part, said in PARTS.items()))


def heads(*paths: Path, at: str = "") -> str:
    """Accuracy in %, NLL, calibration error in %, CPU seconds to fit and to predict the test set; on random labels."""
    counts = at.split(",") if at else []
    by: dict[tuple, list[dict]] = {}
    for line in lines(*paths):
        if line["strategy"] == "random" and (not counts or str(line["per_class"]) in counts):
            by.setdefault((line["set"], line["per_class"], line["head"]), []).append(line)
    names = list(dict.fromkeys(key[2] for key in by))
    rows = []
    for name, n in dict.fromkeys(key[:2] for key in by):
        here = [by.get((name, n, head), []) for head in names]
        rows.append([f"{titled((name, str(n)))} ({max(map(len, here))})", *map(qualities, here)])
    return table(["set, labels per class (seeds)", *names], rows)


def qualities(found: list[dict]) -> str:
    if not found:
        return ""
    accuracy, nll, ece, fit = (np.mean([line[key] for line in found]) for key in ("accuracy", "nll", "ece", "fit"))
    return f"{100 * accuracy:.1f} / {nll:.2f} / {100 * ece:.0f} / {fit:.2f}"


TABLES: dict[str, Callable[..., str]] = {
    f.__name__: f for f in (on_random, on_others, matrix, ranks, saved, shares, parts)
}


def shown(words: list[str]) -> str:
    """A table by the words of the command line."""
    name, *rest = words
    paths = [Path(word) for word in rest if "=" not in word]
    chosen = dict(word.split("=") for word in rest if "=" in word)
    if name == "heads":
        return heads(*paths, **chosen)
    found = Curves.read(*paths).only(chosen.pop("head", ""), chosen.pop("sets", ""))
    return TABLES[name](found, **chosen)


if __name__ == "__main__":
    print(shown(sys.argv[1:]))
