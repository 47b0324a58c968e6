"""Rebuilds the tables and figures of the README, evidence.md and evidence/ from the records in results/.

python docs/evidence.py                    tables between `<!-- results NAME -->` and `<!-- /results -->`, figures
python docs/evidence.py pack NAME RUNS…    puts finished runs into results/, without their pictures
"""

import gzip
import json
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
from evidence_figure import write_gains, write_settings
from gain_figure import figure
from gain_tables import shown as gain

from balent.report import load, summary, tables
from balent.report.against_paper import Beside
from balent.report.compare import differences, paired, span
from balent.report.curves import labels_needed, rising
from balent.report.findings import PHASES, Findings
from balent.report.load import BASELINE
from balent.report.published import acquisition_seconds
from balent.report.sentence import points as signed
from balent.report.significance import interval

FIGURES = Path(__file__).with_name("evidence")
README = Path(__file__).parent.parent / "README.md"
RESULTS = README.with_name("results")
AGAINST = ["gain on random (corrected 95 % CI)", "labels to random's end"]
SPENT = ["spent on duplicates"]


def pack(name: str, runs: Sequence[str]) -> None:
    """One file: lines of all these runs, which `balent report` reads as they are."""
    records = (record for run in load(*runs) for record in run.records)
    kept = ({key: value for key, value in record.items() if key != "thumbnails"} for record in records)
    content = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in kept).encode()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.jsonl.gz").write_bytes(gzip.compress(content, 9, mtime=0))


def findings(name: str, at: Sequence[int] = ()) -> tuple[Findings, ...]:
    """What the records of one file show, a group of settings each."""
    return summary(load(RESULTS / f"{name}.jsonl.gz"), at=at).findings


def shown(words: str) -> str:
    """What the records of one file show: tables, sentences, a figure.

    NAME at COUNTS of POINTS: with so many labels; so many different points are in the pool, the others are duplicates.
    """
    said, _, points = words.partition(" of ")
    name, *counts = said.replace(" at ", " ").split()
    [f] = findings(name, [int(n) for n in counts])
    write_gains(f, FIGURES / f"{name}.png")
    return "\n".join([*_parts(f, points), f"![Gain of each strategy on random]({name}.png)", ""])


def settings(words: str) -> str:
    """Each strategy under each group of settings: its gain on random; a figure. NAME of POINTS, as in `shown`."""
    name, _, points = words.partition(" of ")
    found = findings(name)
    write_settings(found, FIGURES / f"{name}.png")
    rows = [
        [
            f.group.title,
            strategy,
            *_spent(f, strategy, points),
            tables.plus_minus(*f.area(strategy)),
            tables.gain(c),
        ]
        for f in found
        for strategy, c in f.comparisons.items()
    ]
    headings = ["settings", "strategy", *SPENT[: bool(points)]]
    headings += ["area: mean accuracy in %", f"{AGAINST[0]}, in points"]
    figure = f"![Gain on random under each setting]({name}.png)"
    return f"{tables.markdown(headings, rows)}\n{figure}\n"


def _spent(f: Findings, strategy: str, points: str) -> list[str]:
    """The share of labels that went to a duplicate of a labelled point, in the mean of seeds."""
    if not points:
        return []
    queried = [
        [i % int(points) for record in run.records for i in record["picks"]] for run in f.group.strategies[strategy]
    ]
    return [f"{np.mean([1 - len(set(positions)) / len(positions) for positions in queried]):.0%}"]


def pairs(names: str) -> str:
    """One strategy against another, seed by seed, in each of several files: A B in NAME NAME …"""
    one, other, _, *files = names.split()
    rows = [_pair(one, other, f) for name in files for f in findings(name)]
    headings = ["", "seeds", one, other, "gain in area, in points (95 % CI, not corrected)", "at the end"]
    return tables.markdown(headings, [row for row in rows if row])


def _pair(one: str, other: str, f: Findings) -> list[str]:
    """Nothing where one of the two was not run."""
    runs = f.group.strategies
    if not {one, other} <= runs.keys():
        return []
    both = paired(runs[one], runs[other])
    areas = [tables.plus_minus(*f.area(name)) for name in (one, other)]
    found = differences(both, *span([run for pair in both for run in pair]))
    return [f.group.title, str(len(both)), *areas, *map(_points, found)]


def orders(names: str) -> str:
    """Orders of two strategies that the paper's tables decide, and whether they are the same here."""
    found = [(f, Beside(f)) for name in names.split() for f in findings(name)]
    rows = [
        [f.group.title, tables.seeds(f), *(str(b.tally[verdict]) for verdict in ("agrees", "disagrees", "undecided"))]
        for f, b in found
    ]
    return tables.markdown(["", "", "same order", "reversed", "undecided here"], rows)


def seconds(names: str) -> str:
    """What a query costs: scoring the pool, here on one core, and in the paper on its A100."""
    rows = [row for name in names.split() for row in _queries(name)]
    return tables.markdown(["", "strategy", "draws", "seconds here", "seconds in the paper"], rows)


def _queries(name: str) -> Iterator[list[str]]:
    for f in findings(name):
        for strategy, runs in f.group.strategies.items():
            spec, own = runs[0].settings, f.seconds(strategy)["score"]
            theirs = acquisition_seconds(runs[0].experiment, strategy)
            if theirs is not None:
                yield [f.group.title, strategy, str(spec["draws"]), f"{own:.1f}", f"{theirs:.1f}"]


def _points(found: np.ndarray) -> str:
    """The mean of differences by seed; one seed has no interval."""
    if len(found) == 1:
        return signed(found[0])
    low, high = interval(found)
    return f"{signed(found.mean())} ({signed(low)} to {signed(high)})"


def _parts(f: Findings, points: str) -> Iterator[str]:
    what = "accuracy in %, its mean over the curve (area), and the gain on random's area in points"
    yield f"\n**{f.group.title}**, {tables.seeds(f)}: {what}.\n"
    yield tables.markdown(
        [*tables.headings(f, f.counts)[:-2], *AGAINST, *SPENT[: bool(points)]],
        [
            [
                *cells[:-3],
                tables.plus_minus(*f.area(cells[0])),
                *_against_random(f, cells[0]),
                *_spent(f, cells[0], points),
            ]
            for cells in tables.rows(f, f.counts)
        ],
    )
    beside = Beside(f)
    if beside.counts:
        yield "Comparison with the paper:\n"
        yield tables.markdown(beside.headings(), beside.rows())
    yield "".join(f"- {said}\n" for said in (*f.group.remarks, *beside.sentences)) + f"- {_times(f)}\n"


def _against_random(f: Findings, strategy: str) -> list[str]:
    if strategy not in f.comparisons:
        return ["–", "–"]
    return [tables.gain(f.comparisons[strategy]), _to_the_end(f, strategy)]


def _to_the_end(f: Findings, strategy: str) -> str:
    """Labels for the accuracy that random has with all of its labels, in the mean of the seeds that reach it."""
    end = {run.seed: rising(run.accuracies[1])[-1] for run in f.group.strategies[BASELINE]}
    runs = [run for run in f.group.strategies[strategy] if run.seed in end]
    needed = np.array([labels_needed(*run.accuracies, end[run.seed]) for run in runs])
    reached = np.isfinite(needed)
    never = f"not in {(~reached).sum()} of {len(runs)} seeds"
    if not reached.any():
        return never
    return f"{needed[reached].mean():.0f}" + ("" if reached.all() else f", {never}")


def _times(f: Findings) -> str:
    """Seconds per round, in the mean of all strategies that score the pool."""
    names = [name for name in f.group.strategies if name != BASELINE]
    parts = [f"{np.mean([f.seconds(name)[phase] for name in names]):.1f} s to {phase}" for phase in PHASES]
    return f"A round takes {', '.join(parts)}, in the mean of the strategies that score the pool"


def main() -> None:
    if sys.argv[1:2] == ["pack"]:
        pack(sys.argv[2], sys.argv[3:])
    else:
        build()


def build() -> None:
    """Rebuilds the blocks of all pages."""
    for page in (README, FIGURES.with_suffix(".md"), *sorted(FIGURES.glob("*.md"))):
        place = "" if page.parent == FIGURES else f"{FIGURES.name}/"  # of figures
        built = BLOCK.sub(
            lambda block: block[1] + KINDS[block[2]](block[3]).replace("](", f"]({place}") + block[4],  # noqa: B023
            page.read_text(encoding="utf-8"),
        )
        page.write_text(built, encoding="utf-8")


KINDS = {
    "orders": orders,
    "results": shown,
    "settings": settings,
    "pairs": pairs,
    "seconds": seconds,
    "gain": lambda words: gain(words.split()),
    "gains": lambda words: figure(words.split(), FIGURES),
}
BLOCK = re.compile(rf"(<!-- ({'|'.join(KINDS)}) (.+?) -->\n).*?(<!-- /\2 -->)", re.S)

if __name__ == "__main__":
    main()
