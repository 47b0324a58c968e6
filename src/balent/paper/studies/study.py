"""What a study of the paper is: data() -> Table, plot(table) -> figures, claim(table) -> verdicts; and its files.

`data` computes, and takes nothing but sizes and a seed. `claim` reads the rows of the table and nothing else, so that
it can be tested on rows that are made up. A verdict puts our number beside the paper's, whichever way it falls.
"""

import csv
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np

from balent.paper.studies import drawing

Cell = str | int | float
ANSWERS = {True: "holds", False: "does not hold", None: "in part"}


@dataclass(frozen=True, eq=False)
class Table:
    """What a study found: rows to read, and arrays that only its figure needs."""

    columns: tuple[str, ...]
    rows: Sequence[tuple[Cell, ...]]
    arrays: dict[str, np.ndarray] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row) != len(self.columns):
                raise ValueError(f"a row must have the columns {', '.join(self.columns)}, but is {row}")

    def where(self, **cells: Cell) -> "Table":
        """The rows in which these columns have these values."""
        at = {self.columns.index(name): cell for name, cell in cells.items()}
        return Table(self.columns, [row for row in self.rows if all(row[i] == cell for i, cell in at.items())])

    def column(self, name: str, **cells: Cell) -> list[Any]:
        """One column, of the rows in which others have these values."""
        i = self.columns.index(name)
        found = [row[i] for row in self.where(**cells).rows]
        if not found:
            raise ValueError(f"the table has no row with {cells}; nothing can be said of {name}")
        return found

    def cell(self, name: str, **cells: Cell) -> Any:
        """The cell of the one row in which other columns have these values."""
        [found] = self.column(name, **cells)
        return found


@dataclass(frozen=True)
class Verdict:
    """A claim of the paper, and what we found. `holds` is None where it holds in part."""

    claim: str
    where: str  # in the paper
    paper: str  # its number, or "-"
    ours: str
    holds: bool | None

    @property
    def answer(self) -> str:
        return ANSWERS[self.holds]


def verdict(claim: str, where: str, paper: str, ours: str, *tests: bool) -> Verdict:
    """It holds if all tests do, and does not if none does; else in part."""
    if not tests:
        raise ValueError(f"a verdict needs at least one test, but there is none of: {claim}")
    passed = sum(map(bool, tests))
    return Verdict(claim, where, paper, ours, True if passed == len(tests) else None if passed else False)


@dataclass(frozen=True)
class Study:
    """One figure or analysis of the paper. `quick` are smaller sizes for `data`: a look, not a result."""

    about: str
    data: Callable[..., Table]
    plot: Callable[[Table], list[Any]]
    claim: Callable[[Table], list[Verdict]]
    quick: Mapping[str, Any]
    how: str | None  # the docstring of its module: how the numbers were made


@dataclass(frozen=True, eq=False)
class Found:
    """A study that was run."""

    name: str
    study: Study
    table: Table
    verdicts: list[Verdict]
    seconds: float

    def figures(self, ending: str) -> list[str]:
        """The names of its files: NAME.png, and NAME-2.png where there is a second figure."""
        return [f"{self.name}{'' if i == 1 else f'-{i}'}.{ending}" for i in range(1, len(self.drawn) + 1)]

    @cached_property
    def drawn(self) -> list[Any]:
        with drawing.style():
            return self.study.plot(self.table)

    def write(self, folder: Path, ending: str = "png") -> list[Path]:
        """The figures, NAME.csv with the rows, and NAME.npz with what a figure shows beyond them."""
        folder.mkdir(parents=True, exist_ok=True)
        written = [folder / name for name in (*self.figures(ending), f"{self.name}.csv", f"{self.name}.npz")]
        for figure, path in zip(self.drawn, written, strict=False):
            drawing.save(figure, path)
        write_csv(written[-2], self.table.columns, self.table.rows)
        if not self.table.arrays:
            return written[:-1]
        np.savez_compressed(written[-1], **self.table.arrays)  # type: ignore[arg-type]
        return written


def run(name: str, study: Study, quick: bool = False) -> Found:
    """Compute and judge; nothing is written."""
    start = perf_counter()
    table = study.data(**(study.quick if quick else {}))
    return Found(name, study, table, study.claim(table), perf_counter() - start)


def write_csv(path: Path, columns: Sequence[str], rows: Sequence[Sequence[Cell]]) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([columns, *rows])
