"""Files for every other tool: questions out, answers in.

    ask.csv     id, kind, image|text|columns, rank, score, guess, probability, why, round, fingerprint     (or .jsonl)
    answers     id, label, who, skip, seconds, note, fingerprint     CSV, TSV or JSONL; only id and label are required

A file of questions to which somebody has added a column `label` is a file of answers. An error names the lines. What
becomes of answers: telling.py. No torch here.

In a CSV, texts that a spreadsheet would run as a formula begin with an apostrophe (see data/cells.py), and long ones
are cut, since a cell of a spreadsheet holds 32,767 characters. Ids are written as they are, also if they begin with
"=": other tools look items up by them. Numbers have six digits. JSONL has everything as it is.
"""

import csv
import io
import json
import math
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from balent.data.cells import escaped, shown
from balent.data.formats.delimited import delimited
from balent.data.formats.json_lines import json_lines
from balent.data.outputs import whole
from balent.project.questions import Item

CONTENT = {"images": "image", "text": "text", "table": "columns"}
JSON = (".jsonl", ".ndjson")
LONGEST = 32_000  # characters of a text in a CSV
MOST = 5  # lines that an error names
YES, NO = ("1", "true", "yes", "x", "skip"), ("", "0", "false", "no")
COLUMNS = ("id", "label", "who", "skip", "seconds", "note", "fingerprint")

# ── questions ────────────────────────────────────────────────────────────────────────────────────────


def write_questions(items: Sequence[Item], path: Path) -> None:
    """A file with a line per item, as CSV or, by its name, as JSONL: complete or not there."""
    lines = [question(item) for item in items]
    with whole(path) as partial:
        partial.write_bytes(as_json(lines) if path.suffix.lower() in JSON else as_csv(lines))


def question(item: Item) -> dict[str, Any]:
    """The columns of an item, in their order. Items that are rows of numbers have no content to show."""
    content = CONTENT.get(item.kind)
    return {
        "id": item.id,
        "kind": item.kind,
        **({content: getattr(item, content)} if content else {}),
        **{
            name: getattr(item, name)
            for name in ("rank", "score", "guess", "probability", "why", "round", "fingerprint")
        },
    }


def as_json(lines: Sequence[dict[str, Any]]) -> bytes:
    """An object per line. Half characters, which names of files can have, are escaped."""
    text = "".join(json.dumps(line, ensure_ascii=False, default=str) + "\n" for line in lines)
    return text.encode("utf-8", "backslashreplace")


def as_csv(lines: Sequence[dict[str, Any]], columns: Sequence[str] = ()) -> bytes:
    """A line of names, then a line per item."""
    file = io.StringIO(newline="")
    writer = csv.writer(file, lineterminator="\n")
    names = columns or [*(lines[0] if lines else ())]
    writer.writerow(names)
    writer.writerows([_cell(name, line[name]) for name in names] for line in lines)
    return file.getvalue().encode("utf-8", "backslashreplace")


def _cell(name: str, value: Any) -> Any:
    if name == "text":
        return escaped(value if len(value) <= LONGEST else f"{value[:LONGEST]}…")
    if isinstance(value, float):
        return f"{value:.6g}"
    return json.dumps(value, ensure_ascii=False, default=str) if isinstance(value, dict) else value


# ── answers ──────────────────────────────────────────────────────────────────────────────────────────


@dataclass(frozen=True)
class Reply:
    """A line of a file of answers. Without label and skip it is unanswered."""

    line: int
    id: str
    label: str | None = None
    who: str | None = None
    skip: bool = False
    seconds: float | None = None
    note: str = ""
    fingerprint: str | None = None

    @property
    def says(self) -> str:
        """The answer in an error message; empty if there is none."""
        return "skip" if self.skip else "" if self.label is None else shown(self.label)


def read_answers(path: Path) -> list[Reply]:
    """The lines of a CSV, TSV or JSONL file, in their order. Other columns than those of answers are ignored."""
    _refuse_workbooks(path)
    columns, lines = json_lines(path) if path.suffix.lower() in JSON else delimited(path)
    named = {name.strip().lower(): name for name in columns}
    for name in ("id", "label"):
        if name not in named:
            raise ValueError(
                f"{path} has no column {name!r}; its columns are {', '.join(map(shown, columns))}; answers need the "
                "columns id and label"
            )
    cells = {name: columns[named[name]] for name in COLUMNS if name in named}
    found, wrong = list[Reply](), list[str]()
    for i, line in enumerate(lines):
        try:
            found.append(_answer(line, {name: column[i] for name, column in cells.items()}))
        except ValueError as error:
            wrong.append(f"line {line}: {error}")
            if len(wrong) == MOST:
                break
    refuse(str(path), wrong)
    return found


def _answer(line: int, cells: dict[str, Any]) -> Reply:
    answer = Reply(
        line,
        _id(cells["id"]),
        _text("label", cells["label"]).strip() or None,
        _text("who", cells.get("who")).strip() or None,
        _skip(cells.get("skip")),
        _seconds(cells.get("seconds")),
        _text("note", cells.get("note")),
        _text("fingerprint", cells.get("fingerprint")).strip() or None,
    )
    if answer.label is not None and answer.skip:
        raise ValueError(f"it has a label, {shown(answer.label)}, and is skipped; remove one of them")
    return answer


def _id(value: Any) -> str:
    """Numbers are ids too."""
    text = str(value) if isinstance(value, int) and not isinstance(value, bool) else _text("id", value)
    if not text:
        raise ValueError("it has no id")
    return text


def _text(name: str, value: Any) -> str:
    if value is not None and not isinstance(value, str):
        raise ValueError(f'{name} must be text, but is {shown(value)}; write "{value}"')
    return value or ""


def _skip(value: Any) -> bool:
    text = "" if value is None else str(value).strip().lower()
    if text not in (*YES, *NO):
        raise ValueError(f"skip must be one of {', '.join(YES)} or empty, but is {shown(value)}")
    return text in YES


def _seconds(value: Any) -> float | None:
    if value is None or (isinstance(value, str) and not value.strip()):
        return None
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except ValueError:
        seconds = math.nan
    if not 0 <= seconds < math.inf:
        raise ValueError(f"seconds must be a number of 0 or more, but is {shown(value)}")
    return seconds


def _refuse_workbooks(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(4) == b"PK\x03\x04":
            raise ValueError(f"{path} is a workbook or an archive; save the sheet as CSV (UTF-8)")


def refuse(source: str, wrong: Sequence[str]) -> None:
    """An error that names the first lines that cannot be recorded, if there are any."""
    if wrong:
        more = "; lines after it were not looked at" if len(wrong) == MOST else ""
        raise ValueError(f"{source}, {'; '.join(wrong)}{more}; nothing of it was recorded")
