"""Cells of CSV files: no formula gets into them, and every text comes back."""

import csv
import io

import pytest
from helpers import made_up
from hypothesis import given
from hypothesis import strategies as st

from balent.data.cells import escaped, unescaped, write
from balent.data.probabilities import read
from balent.report import load, summary

START = "=+-@\t\r"
TEXTS = st.text() | st.text("'=+-@\t\ra1", max_size=6)  # the second is where the rule has its edges


@given(TEXTS)
def test_every_text_comes_back(text):
    assert unescaped(escaped(text)) == text


@given(TEXTS)
def test_no_cell_begins_as_a_formula(text):
    """Defect: a point called =cmd|… was written as it is, and a spreadsheet that opens the file runs it."""
    assert not escaped(text).startswith(tuple(START))


@given(TEXTS, TEXTS)
def test_two_texts_stay_two(one, other):
    assert (escaped(one) == escaped(other)) == (one == other)


@pytest.mark.parametrize("text", ["cat.png", "", "'", "it's", "'quoted'", "a=b", " =1", "1-2", "ü"])
def test_other_text_stays_as_it_is(text):
    assert escaped(text) == unescaped(text) == text


@pytest.mark.parametrize("start", START)
def test_the_apostrophe_is_the_only_change(start):
    assert escaped(start + "cmd|' /C calc'!A0") == f"'{start}cmd|' /C calc'!A0"


def test_numbers_are_not_escaped(tmp_path):
    write(tmp_path / "t.csv", ["-a", "b"], [[-1.5, -2], ["-1.5", "@b"]])
    assert (tmp_path / "t.csv").read_text() == "'-a,b\n-1.5,-2\n'-1.5,'@b\n"


@given(st.lists(TEXTS.map(lambda s: s.replace("\r", "").replace("\n", "")).filter(str.strip), min_size=1, unique=True))
def test_names_come_back_through_a_file(tmp_path_factory, names):
    """What we write, `balent score` reads: points keep their names."""
    path = tmp_path_factory.mktemp("cells") / "p.csv"
    names = [f"{name}x" for name in names]  # numbers are ordered as numbers, and that is another test
    write(path, ["point", "draw", "class", "probability"], ([n, 0, c, 0.5] for n in names for c in (0, 1)))
    source = read(path)
    assert [source.name(i) for i in range(len(source))] == sorted(names)


def test_names_in_another_encoding_are_written_readably(tmp_path):
    """Defect: UnicodeEncodeError, since a byte 0xff of a file name is half a character for Python."""
    write(tmp_path / "t.csv", ["name"], [["gr\udcffser"], ["\ud800"]])
    rows = list(csv.reader(io.StringIO((tmp_path / "t.csv").read_text("utf-8"))))
    assert rows == [["name"], [r"gr\udcffser"], [r"\ud800"]]


def test_the_report_escapes_names_of_records_and_no_numbers(tmp_path):
    """Records come from others too: an experiment =cmd|… is text, a saving of -12 % stays a number."""
    for name, speed in (("balentacq", 0.8), ("random", 1.0)):
        for seed in (0, 1, 2):
            made_up.write(tmp_path / "runs", made_up.records(name, seed, speed, noise=0.003, experiment="=cmd|a"))
    summary(load(tmp_path / "runs")).csv(tmp_path / "report.csv")
    rows = list(csv.DictReader((tmp_path / "report.csv").read_text("utf-8").splitlines()))
    assert {row["experiment"] for row in rows} == {"'=cmd|a"}
    assert min(float(row["mean"]) for row in rows if row["mean"]) < 0
