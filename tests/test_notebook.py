"""The notebook in examples/ runs, and shows what it was saved with.

Its cells run in a plain namespace: a kernel and its client are 110 MB more to install. The saved outputs are of a real
kernel.
"""

import ast
import json
from pathlib import Path

import pytest

NOTEBOOK = Path(__file__).parents[1] / "examples" / "first_ten_minutes.ipynb"
CELLS = [cell for cell in json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"] if cell["cell_type"] == "code"]


def saved(cell, kind):
    """The text of the outputs of a kind that are kept in the file."""
    return ["".join(output["data"][kind]) for output in cell["outputs"] if kind in output.get("data", {})]


def run(cell, names):
    """Runs a cell; the value of its last expression, as a kernel would show it."""
    tree = ast.parse("".join(cell["source"]))
    last = tree.body.pop() if isinstance(tree.body[-1], ast.Expr) else None
    exec(compile(tree, NOTEBOOK.name, "exec"), names)
    return None if last is None else eval(compile(ast.Expression(last.value), NOTEBOOK.name, "eval"), names)


def test_the_notebook_runs_and_shows_tables(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    names, tables = {"__name__": "__main__"}, 0
    for cell in CELLS:
        value = run(cell, names)
        if hasattr(value, "_repr_html_"):
            tables += 1
            title = value._repr_html_().partition("</strong>")[0]
            assert title in saved(cell, "text/html")[-1]
    assert tables == 5


@pytest.mark.parametrize("number", range(len(CELLS)))
def test_no_cell_was_saved_with_an_error(number):
    assert [output for output in CELLS[number]["outputs"] if output["output_type"] == "error"] == []
    assert "stderr" not in [output.get("name") for output in CELLS[number]["outputs"]]


def test_the_notebook_names_no_place_of_the_machine_that_ran_it():
    assert str(Path.home()) not in NOTEBOOK.read_text(encoding="utf-8")
    assert "/tmp" not in NOTEBOOK.read_text(encoding="utf-8")
