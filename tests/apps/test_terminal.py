"""What is printed: names are shown, never obeyed."""

import io

import pytest
from rich.table import Table
from typer import Exit

from balent.apps.cli import terminal

EVIL = "a\x1b]0;owned\x07\x1b[31mb\x9b2J\x7f\u202egnp.exe\udcff\ud800"
SHOWN = "a␛]0;owned␇␛[31mb�2J␡�gnp.exe��"


@pytest.fixture
def printed(monkeypatch):
    """What both consoles print, on a terminal of bytes in UTF-8: half characters cannot be written to it."""
    raw = io.BytesIO()
    for console in (terminal.out, terminal.err):
        monkeypatch.setattr(console, "_file", io.TextIOWrapper(raw, encoding="utf-8", write_through=True))
        monkeypatch.setattr(console, "_width", 200)
    return lambda: raw.getvalue().decode()


def fail(error):
    with pytest.raises(Exit), terminal.errors_in_words():
        raise error


@pytest.mark.parametrize(
    "speak",
    [
        terminal.show,
        terminal.say,
        lambda name: terminal.show_table([name], [[name, name]]),
        lambda name: terminal.out.print(Table(name)),
        lambda name: fail(ValueError(name)),
    ],
    ids=["show", "say", "show_table", "a table of others", "errors"],
)
def test_names_do_not_give_orders_to_the_terminal(printed, speak):
    """Defect: ESC bytes in names reached the terminal, which then changes its title, its colours, its text."""
    speak(EVIL)
    assert SHOWN in printed()
    assert not set(printed()) & set("\x1b\x07\x9b\x7f\u202e")


def test_colours_of_our_own_stay(printed, monkeypatch):
    monkeypatch.setattr(terminal.out, "_color_system", terminal.Console(color_system="standard")._color_system)
    terminal.show("[red]no[/]\x1b[32m")
    assert printed() == "\x1b[31mno\x1b[0m␛[32m\n"


def test_lines_and_letters_of_every_script_stay(printed):
    terminal.say("grün, зелёный, 緑\nsecond line 👍🏽")
    assert printed() == "grün, зелёный, 緑\nsecond line 👍🏽\n"


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (FileNotFoundError(2, "No such file or directory", "a/b.csv"), "error: a/b.csv: No such file or directory\n"),
        (MemoryError("Unable to allocate 9 TiB"), "error: there is not enough memory. Unable to allocate 9 TiB\n"),
        (MemoryError(), "error: there is not enough memory.\n"),
    ],
)
def test_errors_of_the_system_are_sentences(printed, error, said):
    fail(error)
    assert printed() == said
