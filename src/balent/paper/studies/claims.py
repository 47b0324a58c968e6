"""All claims of the paper in one table, and the page that shows them with their figures."""

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path, PurePath

from balent.paper.studies.study import Cell, Found, Study, run, write_csv
from balent.report import tables

COLUMNS = ("verdict", "claim", "where", "paper", "ours", "study")
LONGEST = 40  # rows that are shown; all are in the CSV
INTRODUCTION = """\
# The paper, recomputed

Figures and analytic statements of *Active Learning in Bayesian Neural Networks with Balanced Entropy Learning
Principle* (Woo, ICLR 2023), computed again. This page is written by `{command}`; every number on it is the output of
that run. One study alone: `balent study NAME`. Accuracies of active learning are not here: they take runs (`balent
run`).

A verdict is ours: each has a test that could have failed, in `src/balent/paper/studies/NAME.py`. Where the paper leaves
open how a figure was made, we say what we took, and "in part" may mean that the claim depends on it. Where it gives no
number, the threshold is ours as well, some of them set after a first look; networks are of one seed unless said
otherwise. Read our number before the verdict. More on errata: [measures.md](measures.md#errata-of-the-paper). What
Monte-Carlo noise does: [uncertainty.md](uncertainty.md).
"""


def found(studies: Mapping[str, Study], quick: bool = False) -> Iterator[Found]:
    for name, study in studies.items():
        yield run(name, study, quick)


def rows(found: Iterable[Found]) -> list[tuple[str, ...]]:
    """A row for each claim."""
    return [(v.answer, v.claim, v.where, v.paper, v.ours, one.name) for one in found for v in one.verdicts]


def count(found: Iterable[Found]) -> str:
    """How many claims hold, in words."""
    answers = Counter(v.holds for one in found for v in one.verdicts)
    total, yes, partly, no = sum(answers.values()), answers[True], answers[None], answers[False]
    return f"Of {total} claims {yes} hold, {partly} hold in part, {no} do not hold"


def write(found: Sequence[Found], folder: Path, ending: str, page: Path | None, command: str) -> list[Path]:
    """claims.csv where there are several studies, and the page where one is asked for."""
    written = []
    if len(found) > 1:
        written.append(folder / "claims.csv")
        write_csv(written[0], COLUMNS, rows(found))
    if page is not None:
        written.append(page)
        page.parent.mkdir(parents=True, exist_ok=True)
        figures = os.path.relpath(folder, page.parent)
        page.write_text(markdown(found, PurePath(figures), ending, command), encoding="utf-8")
    return written


def markdown(found: Sequence[Found], folder: PurePath, ending: str, command: str) -> str:
    """The page; figures are linked in this folder, seen from where the page is."""
    claims = _table(COLUMNS, rows(found))
    parts = [INTRODUCTION.format(command=command), f"## Claims\n\n{count(found)}.\n\n{claims}"]
    return "\n".join([*parts, *(_section(one, folder, ending) for one in found)]).rstrip() + "\n"


def _section(one: Found, folder: PurePath, ending: str) -> str:
    table = one.table
    rows = _table(table.columns, table.rows) if len(table.rows) <= LONGEST else ""
    figures = "\n\n".join(f"![{one.study.about}]({(folder / name).as_posix()})" for name in one.figures(ending))
    return "\n".join([f"## {one.name}\n", (one.study.how or "").strip(), "", figures, "", rows])


def _table(columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> str:
    return tables.markdown(columns, ([shown(cell) for cell in row] for row in rows))


def shown(cell: Cell) -> str:
    """Four digits; what there is no number for is left empty."""
    if isinstance(cell, float):
        return "" if cell != cell else f"{cell:.4g}"
    return str(cell)
