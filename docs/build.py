"""Rebuilds the option tables of cli.md from the command line itself, so that they cannot go stale.

Each command has a section `## balent NAME` with `<!-- generated -->` … `<!-- /generated -->` in it. With
--check nothing is written: the exit code says whether the file is up to date.
"""

import re
import sys
from pathlib import Path

import typer

from balent.apps.cli import app

PAGE = Path(__file__).with_name("cli.md")
SECTION = re.compile(r"^## balent (\S+)\n.*?(?=^## |\Z)", re.M | re.S)
TABLE = re.compile(r"(?<=<!-- generated -->\n).*?(?=<!-- /generated -->)", re.S)


def table(command) -> str:
    """What a command takes, a row each; its help stands in its docstring and in the text around."""
    rows = [_row(p) for p in command.params if "--help" not in p.opts]
    head = "| takes | default | what it is |\n| --- | --- | --- |\n"
    return f"\n{head}{''.join(rows)}\n" if rows else "\nNo arguments, no options.\n\n"


def _row(p) -> str:
    value = "" if getattr(p, "is_flag", True) else f" {p.name.upper()}"
    takes = ", ".join(f"`{option}{value}`" for option in p.opts) if p.opts[0].startswith("-") else f"`{p.name.upper()}`"
    default = p.default[0] if isinstance(p.default, list) else p.default
    cells = (takes, "" if default is None or default is False else f"`{default}`", p.help or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def build(text: str) -> str:
    commands = typer.main.get_command(app).commands
    described = {section[1] for section in SECTION.finditer(text) if TABLE.search(section[0])}
    if described != set(commands):
        raise SystemExit(f"{PAGE.name} has sections with a table for {sorted(described)}, but needs {sorted(commands)}")
    return SECTION.sub(lambda section: TABLE.sub(lambda _: table(commands[section[1]]), section[0]), text)


def main() -> None:
    text = PAGE.read_text(encoding="utf-8")
    built = build(text)
    if "--check" in sys.argv[1:]:
        raise SystemExit(None if built == text else f"{PAGE.name} is stale; run: make docs")
    PAGE.write_text(built, encoding="utf-8")


if __name__ == "__main__":
    main()
