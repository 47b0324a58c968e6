"""`balent --help` shows what people do in the order in which they do it, and examples that the commands understand."""

import shlex

import pytest
import typer
from typer.testing import CliRunner

from balent.apps import cli
from balent.apps.cli.first_steps import FIRST_STEPS

MENU = typer.main.get_command(cli.app)
COMMANDS = MENU.commands
ORDER = "label ask tell predict status export classes acquire score run report study embed simclr connect doctor list"


def said(*words):
    return CliRunner().invoke(cli.app, [*words, "--help"], env={"COLUMNS": "80"}).output


def example(name):
    """The paragraph after the sentence that says what a command does."""
    paragraphs = COMMANDS[name].help.split("\n\n")
    return paragraphs[1].strip() if len(paragraphs) > 1 else ""


def test_commands_stand_in_the_order_in_which_people_need_them():
    assert list(COMMANDS) == [name for name in ORDER.split() if name in COMMANDS]


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_stands_under_a_heading_with_one_line(name):
    """A command that is added elsewhere than in PANELS would stand above all others, under the heading Commands."""
    shown = said()
    assert COMMANDS[name].rich_help_panel in shown
    first = COMMANDS[name].help.split("\n\n")[0]
    assert any(f" {name} " in line and first in line for line in shown.splitlines()), f"too long for a line: {first}"


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_has_an_example_on_a_line_of_its_own(name):
    assert example(name).startswith(f"balent {name}")
    assert example(name) in [line.strip() for line in said(name).splitlines()]


@pytest.mark.parametrize("line", [*map(example, COMMANDS), *FIRST_STEPS])
def test_examples_are_understood(line):
    """Names, options and the number of arguments; what they name need not be there. Errors are raised."""
    _, name, *words = shlex.split(line)
    assert COMMANDS[name].make_context(name, words).command is COMMANDS[name]


@pytest.mark.parametrize("word", ["--help", "list"])
def test_help_and_list_say_where_to_start(word):
    shown = CliRunner().invoke(cli.app, [word], env={"COLUMNS": "80"}).output
    for command, what in FIRST_STEPS.items():
        assert any(command in line and line.rstrip().endswith(what) for line in shown.splitlines())


def test_the_list_opens_with_where_to_start():
    assert CliRunner().invoke(cli.app, ["list"]).output.startswith("start here\n")
