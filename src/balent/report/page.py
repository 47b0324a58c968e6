"""One HTML page that needs nothing else: no network, no server, no framework.

Sentences and tables are written here, so they can be read without JavaScript. `static/page.js` draws the curves and the
picked images from the JSON inside the page. Every text passes through `html.escape` or the DOM.
"""

import base64
import binascii
import html
import json
import math
from collections.abc import Iterable, Sequence
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from balent.loop.journal import whole
from balent.report import tables
from balent.report.against_paper import Beside
from balent.report.curves import Curve
from balent.report.findings import PHASES, Findings
from balent.report.lines import METRICS, OF_PICKS, Record
from balent.report.load import Run
from balent.report.look import look
from balent.report.summary import Summary, summary

SHOWN = 25  # picks of a round
PNG = b"\x89PNG\r\n\x1a\n"
NAMES = {**METRICS, **OF_PICKS}


def write_html(runs: Sequence[Run] | Summary, path: str | Path, title: str = "") -> None:
    """Completely or not at all: the page gets its name once it is complete."""
    path = Path(path)
    text = page(runs if isinstance(runs, Summary) else summary(runs), title)
    with whole(path) as partial:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")  # names of files may not be UTF-8


def page(s: Summary, title: str = "") -> str:
    title = title or "Active learning: " + ", ".join(f.group.title for f in s.findings)
    return Template(_static("page.html")).substitute(
        title=html.escape(title),
        css=_static("page.css"),
        js=_static("page.js"),
        remarks=_remarks(s.remarks),
        sections="\n".join(_section(i, b, len(s.findings) == 1) for i, b in enumerate(s.beside.values())),
        # "<" is the only character that could end the element which holds the data
        data=json.dumps(_data(s), separators=(",", ":"), allow_nan=False).replace("<", "\\u003c"),
    )


def _static(name: str) -> str:
    return (files("balent.report") / "static" / name).read_text(encoding="utf-8")


# ── words and tables ─────────────────────────────────────────────────────────────────────────────


def _section(i: int, beside: Beside, alone: bool) -> str:
    f = beside.findings
    return Template(_static("section.html")).substitute(
        i=i,
        hidden=" hidden" if alone else "",
        title=html.escape(f.group.title),
        headline=html.escape(f.headline),
        bands=html.escape(_bands(f)),
        sentences=_list("sentences", f.sentences if f.comparisons else ()),
        table=_table(tables.headings(f, f.counts), tables.rows(f, f.counts)),
        caption=html.escape(f"{_spread(f)} {tables.caption(f)}"),
        paper=_paper(beside),
        times=_table(["strategy", *PHASES, "all rounds"], _times(f)),
        settings=_settings(f),
    )


def _bands(f: Findings) -> str:
    """What lines and bands of the chart are."""
    if not _several(f):
        return "One seed: lines without bands."
    return f"Lines: mean of {tables.seeds(f)}. Bands: ± one standard deviation over seeds."


def _spread(f: Findings) -> str:
    several = "Accuracy: mean ± one standard deviation over seeds." if _several(f) else "Accuracy: of one seed."
    return f"{several} In brackets: 95 % confidence interval of the gain." if f.comparisons and _several(f) else several


def _several(f: Findings) -> bool:
    return any(len(runs) > 1 for runs in f.group.strategies.values())


def _remarks(remarks: Sequence[str]) -> str:
    """Folded, so that they do not stand before the result."""
    if not remarks:
        return ""
    count = "1 remark" if len(remarks) == 1 else f"{len(remarks)} remarks"
    return f'<details class="remarks"><summary>{count} on the records</summary>{_list("lines", remarks)}</details>'


def _list(kind: str, lines: Iterable[str]) -> str:
    items = "".join(f"<li>{html.escape(line)}</li>" for line in lines)
    return f'<ul class="{kind}">{items}</ul>' if items else ""


def _table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """In a box that scrolls sideways where the page is narrow."""
    head = "".join(f'<th scope="col">{html.escape(cell)}</th>' for cell in headings)
    body = "".join(
        f'<tr><th scope="row">{html.escape(row[0])}</th>{"".join(f"<td>{html.escape(c)}</td>" for c in row[1:])}</tr>'
        for row in rows
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
    return f'<div class="wide" tabindex="0" role="region" aria-label="Table; scrolls sideways">{table}</div>'


def _paper(b: Beside) -> str:
    """Empty where the paper has no such experiment."""
    if not b.sentences:
        return ""
    table = _table(b.headings(), b.rows()) if b.counts else ""
    return f"<h3>Comparison with the paper</h3>{_list('sentences', b.sentences)}{table}"


def _times(f: Findings) -> list[list[str]]:
    """Seconds per round by phase, and per run."""
    return [
        [name, *map(_seconds, f.seconds(name).values()), _seconds(f.seconds_in_all(name))]
        for name in f.group.strategies
    ]


def _seconds(s: float) -> str:
    return "–" if math.isnan(s) else f"{s:,.0f} s" if s >= 100 else f"{s:.3g} s"


def _settings(f: Findings) -> str:
    runs = [run for of in f.group.strategies.values() for run in of]
    versions = {key: runs[0].records[0].get(key) for key in ("balent", "torch", "draws")}
    seeds = sorted({run.seed for run in runs})
    shown = {**f.group.settings, "seeds": seeds, **{key: v for key, v in versions.items() if v is not None}}
    rows = "".join(f"<dt>{html.escape(key)}</dt><dd>{html.escape(_plain(v))}</dd>" for key, v in shown.items())
    return f"<dl>{rows}</dl>"


def _plain(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


# ── data for the script ──────────────────────────────────────────────────────────────────────────


def _data(s: Summary) -> list[dict[str, Any]]:
    return [_group(f) for f in s.findings]


def _group(f: Findings) -> dict[str, Any]:
    images: dict[str, int] = {}  # an image that several strategies picked is stored once
    looks = look(list(f.curves))
    strategies = [
        {
            "name": name,
            "light": looks[name].light,
            "dark": looks[name].dark,
            "dashes": " ".join(f"{length:g}" for length in looks[name].dashes),
            "curves": {metric: _curve(c) for metric, c in f.curves[name].items()},
            "runs": [{"seed": run.seed, "rounds": _rounds(run, images)} for run in f.group.strategies[name]],
        }
        for name in f.order
    ]
    present = [m for m in NAMES if any(m in curves for curves in f.curves.values())]
    return {
        "title": f.group.title,
        "metrics": [[m, NAMES[m]] for m in present],
        "strategies": strategies,
        "images": list(images),
    }


def _curve(c: Curve) -> dict[str, list[Any]]:
    return {"labels": _numbers(c.labels), "mean": _numbers(c.mean), "std": _numbers(c.std)}


def _numbers(values: Iterable[float]) -> list[float | None]:
    return [float(f"{v:.6g}") if math.isfinite(v) else None for v in values]


def _rounds(run: Run, images: dict[str, int]) -> list[dict[str, Any]]:
    return [
        {
            "round": record["round"],
            "labels": record["labels"],
            "queried": len(record["picks"]),
            "picks": _picks(record, images),
        }
        for record in run.records
        if record.get("picks")
    ]


def _picks(record: Record, images: dict[str, int]) -> list[list[Any]]:
    """Position, score, label and image of each; null where unknown."""
    columns = [(record.get(key) or [])[:SHOWN] for key in ("picks", "scores", "pick_labels", "thumbnails")]
    picks = []
    for i, position in enumerate(columns[0]):
        score, label, image = (column[i] if i < len(column) else None for column in columns[1:])
        shown = images.setdefault(str(image), len(images)) if _is_png(image) else None
        picks.append([position, _score(score), label, shown])
    return picks


def _score(score: object) -> object:
    return (
        float(f"{score:.3g}")
        if isinstance(score, float) and math.isfinite(score)
        else None
        if score is None
        else str(score)
    )


def _is_png(image: object) -> bool:
    try:
        return isinstance(image, str) and base64.b64decode(image[:16], validate=True).startswith(PNG)
    except binascii.Error:
        return False
