"""The reference names every setting with its default, and every public name."""

import re
from dataclasses import MISSING, fields
from pathlib import Path

import pytest

import balent
from balent.project.settings import Settings
from balent.simulation.experiment import Experiment

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "docs/reference/settings.md").read_text(encoding="utf-8")


def rows(heading):
    """Setting → default, of the table below a heading; a row may have several settings, and their defaults in order."""
    table = PAGE.split(f"## {heading}\n")[1].split("\n## ")[0]
    found = {}
    for line in table.splitlines():
        if line.startswith("| `"):
            names, defaults = (cell.split(", ") for cell in line.strip("| ").split(" | ")[:2])
            found |= dict(zip((name.strip("`[]") for name in names), defaults + [""] * len(names), strict=False))
    return found


@pytest.mark.parametrize(("heading", "kind"), [("Of a project", Settings), ("Of an experiment", Experiment)])
def test_every_setting_stands_on_the_page(heading, kind):
    assert set(rows(heading)) == {field.name for field in fields(kind)}


@pytest.mark.parametrize(("heading", "kind"), [("Of a project", Settings), ("Of an experiment", Experiment)])
def test_defaults_are_those_of_the_code(heading, kind):
    shown = rows(heading)
    plain = [field for field in fields(kind) if field.default not in (MISSING, "", 0.0, ()) or field.name == "seed"]
    for field in plain:
        assert shown[field.name].strip("`") == str(field.default).lower(), field.name


def test_variables_of_the_environment_stand_on_the_page():
    code = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "src").rglob("*.py"))
    assert set(re.findall(r'"(BALENT_[A-Z]+)"', code)) <= set(re.findall(r"`(BALENT_[A-Z]+)`", PAGE))


def test_every_public_name_stands_in_the_reference():
    page = (ROOT / "docs/reference/python.md").read_text(encoding="utf-8")
    names = {name for name in dir(balent) if not name.startswith("_")}
    assert names <= set(re.findall(r"\bbalent\.(\w+)", page))
