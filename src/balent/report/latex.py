"""Tables for a paper: `tabular` environments with the rules of booktabs, names escaped, ready for `\\input`."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from balent.loop.journal import whole

Table = tuple[str, str, Sequence[str], Iterable[Sequence[str]]]  # title, caption, headings, rows

_ESCAPED = {
    **{character: f"\\{character}" for character in "&%$#_{}"},
    "\\": "\\textbackslash{}",
    "~": "\\textasciitilde{}",
    "^": "\\textasciicircum{}",
    "±": "$\\pm$",
    "−": "$-$",
    "–": "--",
    "<": "$<$",
    ">": "$>$",
}


def escaped(text: str) -> str:
    """A text as LaTeX prints it.

    >>> escaped("power_bald: 91.2 ± 0.8 %")
    'power\\\\_bald: 91.2 $\\\\pm$ 0.8 \\\\%'
    """
    return "".join(_ESCAPED.get(character, character) for character in text)


def tabular(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Names on the left, numbers on the right."""
    lines = [_line(headings), "\\midrule\n", *map(_line, rows)]
    columns = "l" + "r" * (len(headings) - 1)
    return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{''.join(lines)}\\bottomrule\n\\end{{tabular}}\n"


def _line(cells: Sequence[str]) -> str:
    return " & ".join(map(escaped, cells)) + " \\\\\n"


def write_latex(tables: Iterable[Table], path: str | Path) -> None:
    """One `tabular` after the other, each below its title and its caption as comments."""
    parts = [f"% {title}\n% {caption}\n{tabular(headings, rows)}" for title, caption, headings, rows in tables]
    text = "% By balent report; needs \\usepackage{booktabs}\n\n" + "\n".join(parts)
    with whole(Path(path)) as partial:
        partial.write_text(text, encoding="utf-8", errors="backslashreplace")
