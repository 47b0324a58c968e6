"""The researcher's path, as docs/research.md has it: its file and its four commands, on tiny settings."""

import os
import re
import subprocess
import sys
from pathlib import Path

from balent.contracts.predictor_contract import SUITE

PAGE = (Path(__file__).parent.parent / "docs" / "research.md").read_text(encoding="utf-8")
TINY = " --jobs 1 --set total=24 --set per_round=2 --set epochs=2 --set draws=4 --set evaluation_draws=4"


def block(language):
    return re.search(rf"^```{language}\n(.*?)^```$", PAGE, re.M | re.S)[1]


def test_the_four_commands_give_a_figure_and_a_table(tmp_path):
    (tmp_path / "mine.py").write_text(block("python"), encoding="utf-8")
    commands = block("sh").splitlines()
    assert len(commands) == 4
    for command in commands:
        small = command + TINY if command.startswith("balent run") else command
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        done = subprocess.run(
            ["sh", "-ec", small], cwd=tmp_path, env={**os.environ, "PATH": path}, capture_output=True, text=True
        )
        assert done.returncode == 0, f"$ {small}\n{done.stdout}{done.stderr}"
    assert len([*(tmp_path / "runs").rglob("records.jsonl")]) == 9
    assert (tmp_path / "curve.pdf").read_bytes().startswith(b"%PDF")
    table = (tmp_path / "table.tex").read_text(encoding="utf-8")
    assert all(name in table for name in ("mine.py:closest", "badge", "random"))
    assert "wrote table.tex" in done.stderr


def test_the_page_lists_every_promise_of_a_predictor():
    for promise in SUITE:
        assert f"- {promise.__doc__.splitlines()[0]}\n" in PAGE
