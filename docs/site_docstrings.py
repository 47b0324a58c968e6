"""Docstrings as pages of the site show them: parameters as a list, examples as code.

In the source a parameter is a line, its name and two or more blanks before its meaning, and an example is a paragraph
that begins with `>>>`.
"""

import re

import griffe

PARAMETER = re.compile(r"^(?P<name>[*\w][\w*, ]*?) {2,}(?P<meaning>\S.*)$")
MORE = re.compile(r"^ {4,}(?P<meaning>\S.*)$")


class Shown(griffe.Extension):
    def on_object(self, *, obj: griffe.Object, **_: object) -> None:
        if obj.docstring:
            obj.docstring.value = "\n\n".join(map(shown, obj.docstring.value.split("\n\n")))


def shown(paragraph: str) -> str:
    lines = paragraph.splitlines()
    if paragraph.startswith(">>>"):
        return f"```pycon\n{paragraph}\n```"
    if lines and PARAMETER.match(lines[0]) and all(PARAMETER.match(line) or MORE.match(line) for line in lines):
        return "\n".join(map(entry, lines))
    return paragraph


def entry(line: str) -> str:
    found = PARAMETER.match(line)
    return f"- `{found['name']}`: {found['meaning']}" if found else f"    {line.strip()}"
