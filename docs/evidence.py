"""Rebuilds the tables and figures of evidence.md from the records in results/, so that they cannot go stale.

python docs/evidence.py               tables between `<!-- results NAME -->` and `<!-- /results -->`, figures
python docs/evidence.py pack RUNS…    puts finished runs into results/, without their pictures
"""

import gzip
import json
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from balent.report import load, summary, tables, write_plot
from balent.report.beside import Beside
from balent.report.compare import Gain
from balent.report.findings import PHASES, Findings

PAGE = Path(__file__).with_name("evidence.md")
FIGURES = Path(__file__).with_name("evidence")
RESULTS = Path(__file__).parent.parent / "results"
BLOCK = re.compile(r"(<!-- (results|settings) (\S+) -->\n).*?(<!-- /\2 -->)", re.S)


def pack(name: str, runs: Sequence[str]) -> None:
    """One file: lines of all these runs, which `balent report` reads as they are."""
    records = (record for run in load(*runs) for record in run.records)
    kept = ({key: value for key, value in record.items() if key != "thumbnails"} for record in records)
    content = "".join(json.dumps(record, separators=(",", ":")) + "\n" for record in kept).encode()
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{name}.jsonl.gz").write_bytes(gzip.compress(content, 9, mtime=0))


def shown(name: str) -> str:
    """What the records of one file show: tables, sentences, a figure."""
    runs = load(RESULTS / f"{name}.jsonl.gz")
    FIGURES.mkdir(exist_ok=True)
    write_plot(runs, FIGURES / f"{name}.png")
    parts = [part for f in summary(runs).findings for part in _parts(f)]
    return "\n".join([*parts, f"![Learning curves](evidence/{name}.png)", ""])


def settings(name: str) -> str:
    """One line for each strategy under each group of settings: mean accuracy of the curve, what it gained on random."""
    found = summary(load(RESULTS / f"{name}.jsonl.gz")).findings
    rows = [
        [f.group.title, strategy, tables.plus_minus(*f.area(strategy)), _points(c.gains)]
        for f in found
        for strategy, c in f.comparisons.items()
    ]
    return (
        _table(["settings", "strategy", "accuracy in %, mean of the curve", "points gained on random (95 % CI)"], rows)
        + "\n"
    )


def _points(gains: Sequence[Gain]) -> str:
    [whole, _] = gains
    return f"{100 * whole.gain:+.1f} ({100 * whole.low:+.1f} to {100 * whole.high:+.1f})".replace("-", "−")


def _parts(f: Findings) -> Iterator[str]:
    what = "accuracy in %, area under the curve, labels saved against random"
    yield f"\n**{f.group.title}**, {tables.seeds(f)}: {what}.\n"
    yield _table(tables.headings(f, f.counts), tables.rows(f, f.counts))
    beside = Beside(f)
    if beside.counts:
        yield "\nBeside the paper:\n"
        yield _table(beside.headings(), beside.rows())
    yield "\n" + "".join(f"- {said}\n" for said in (*f.sentences, *beside.sentences))
    yield "Seconds of a round:\n"
    yield _table(["strategy", *PHASES], _seconds(f)) + "\n"


def _seconds(f: Findings) -> list[list[str]]:
    times = {name: f.seconds(name) for name in f.group.strategies}
    return [[name, *(f"{seconds:.1f}" for seconds in of.values())] for name, of in times.items()]


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [headings, ["---"] * len(headings), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    if sys.argv[1:2] == ["pack"]:
        pack(sys.argv[2], sys.argv[3:])
    else:
        build()


def build() -> None:
    """The page, with its tables made anew."""
    text = PAGE.read_text(encoding="utf-8")
    PAGE.write_text(BLOCK.sub(lambda block: block[1] + KINDS[block[2]](block[3]) + block[4], text), encoding="utf-8")


KINDS = {"results": shown, "settings": settings}

if __name__ == "__main__":
    main()
