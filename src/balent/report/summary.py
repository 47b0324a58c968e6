"""The summary of all records: sentences first, then tables."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from rich.console import Group, RenderableType

from balent.report import tables
from balent.report.against_paper import Beside
from balent.report.compare import comparisons
from balent.report.findings import Findings
from balent.report.latex import write_latex
from balent.report.load import Run, groups


@dataclass(frozen=True, eq=False)
class Summary:
    """What the records show, experiment by experiment."""

    findings: tuple[Findings, ...]
    notes: tuple[str, ...] = ()

    @cached_property
    def beside(self) -> dict[Findings, Beside]:
        """The paper's numbers for each."""
        return {f: Beside(f) for f in self.findings}

    @cached_property
    def sentences(self) -> list[str]:
        """Each names its experiment where there are several."""
        return [f"{self._of(f)}{said}" for f in self.findings for said in (*f.sentences, *self.beside[f].sentences)]

    @cached_property
    def remarks(self) -> list[str]:
        """What was left out, and what a reader should know about the records."""
        return [*self.notes, *(f"{self._of(f)}{said}" for f in self.findings for said in f.group.remarks)]

    def _repr_html_(self) -> str:
        """For notebooks."""
        return "".join(f._repr_html_() for f in self.findings)

    def table(self) -> RenderableType:
        """For the terminal; the paper's numbers follow, where it has any."""
        papers = [
            tables.plain(f"{f.group.title}: accuracy in % here and in the paper", b.headings(), b.rows())
            for f, b in self.beside.items()
            if b.counts
        ]
        return Group(tables.table(self.findings), *papers)

    def csv(self, path: str | Path) -> None:
        """Every number of the report, one per row."""
        tables.write_csv(self.findings, Path(path))

    def latex(self, path: str | Path) -> None:
        """The table of each experiment, for a paper."""
        write_latex(((f.group.title, tables.caption(f), *_few(f)) for f in self.findings), path)

    def _of(self, f: Findings) -> str:
        return f"{f.group.title}: " if len(self.findings) > 1 else ""


def _few(f: Findings) -> tuple[list[str], list[list[str]]]:
    """Headings and rows: the accuracy at the first, the middle and the last label count, area, gain, labels saved."""
    counts = f.counts if f.wanted else [f.counts[i] for i in sorted({0, len(f.counts) // 2, len(f.counts) - 1})]
    return tables.headings(f, counts), tables.rows(f, counts)


def summary(runs: Sequence[Run], at: Sequence[int] = ()) -> Summary:
    """What these runs show; `at`: label counts at which the table gives the accuracy."""
    if not runs:
        raise ValueError("there are no runs to report on; load() reads them from the folder that balent run wrote to")
    found = groups(runs)
    findings = (Findings(group, c, tuple(at)) for group, c in zip(found, comparisons(found), strict=True))
    return Summary(tuple(findings), tuple(getattr(runs, "remarks", ())))
