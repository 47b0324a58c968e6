"""Figures and tables for a paper: size, fonts, looks that stay, and what LaTeX can read."""

import re
import zlib

import matplotlib as mpl
import matplotlib.image
import pytest
from helpers import made_up

from balent.report import load, summary, write_figure
from balent.report.latex import escaped
from balent.report.look import COLOURS, KNOWN, RANDOM, look

STRATEGIES = {"balentacq": 1.6, "mine_own.py:top_k": 1.2, "random": 1.0}


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    for name, speed in STRATEGIES.items():
        for seed in range(3):
            made_up.write(folder, made_up.records(name.replace("/", "%2F"), seed, speed, noise=0.01))
    return summary(load(folder))


# ── looks ────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("others", [[], ["bald"], ["random", "zzz", "aaa", "mine.py:f", "badge", "entropy"]])
@pytest.mark.parametrize("name", ["balentacq", "mine.py:closest", "power:bald(beta=8)", "random"])
def test_a_strategy_has_its_colour_whatever_else_is_in_a_report(name, others):
    alone = look([name])[name]
    beside = look([*others, name])[name]
    assert (alone.light, alone.dark, alone.marker) == (beside.light, beside.dark, beside.marker)


def test_no_two_of_a_report_look_alike_while_dashes_last():
    names = [*KNOWN, "random", *(f"mine.py:f{i}" for i in range(10))]
    drawn = [(found.light, found.dashes) for found in look(names).values()]
    counts = {colour: sum(light == colour for light, _ in drawn) for colour in COLOURS}
    expected = 1 + sum(min(4, count) for count in counts.values())  # there are four kinds of dashes
    assert len(set(drawn)) == expected


def test_the_best_known_have_colours_of_their_own_and_random_none():
    drawn = look([*KNOWN[: len(COLOURS)], "random"])
    assert {found.light for found in drawn.values()} == {*COLOURS, RANDOM.light}
    assert all(found.dashes == () for name, found in drawn.items() if name != "random")


def luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


@pytest.mark.parametrize("name", [*KNOWN[: len(COLOURS)], "random"])
def test_lines_stand_out_from_both_backgrounds(name):
    """WCAG asks for a contrast of 3 : 1 of what is drawn."""
    found = look([name])[name]
    assert 1.05 / (luminance(found.light) + 0.05) >= 3
    assert (luminance(found.dark) + 0.05) / (luminance("#16181d") + 0.05) >= 3


# ── figures ──────────────────────────────────────────────────────────────────────────────────────


def test_a_figure_is_as_wide_as_a_column(shown, tmp_path):
    caption = write_figure(shown, tmp_path / "curve.png")
    assert matplotlib.image.imread(tmp_path / "curve.png").shape[1] == round(3.3 * 300)
    assert caption == ("accuracy by number of labels (20 to 400): mean of 3 seeds, bands ± one standard deviation")


def test_fonts_of_a_pdf_are_embedded_and_its_text_can_be_searched(shown, tmp_path):
    write_figure(shown, tmp_path / "curve.pdf")
    content = (tmp_path / "curve.pdf").read_bytes()
    assert b"/FontFile2" in content
    assert b"/Type3" not in content
    assert b"CreationDate" not in content
    (width,) = {float(box.split()[2]) for box in re.findall(rb"/MediaBox \[ (.*?) \]", content)}
    assert width == pytest.approx(72 * 3.3)


def test_an_svg_has_outlines_instead_of_fonts_and_is_the_same_every_time(shown, tmp_path):
    for name in ("a.svg", "b.svg"):
        write_figure(shown, tmp_path / name, "nll")
    text = (tmp_path / "a.svg").read_text()
    assert "<text" not in text
    assert "font-family" not in text
    assert zlib.crc32(text.encode()) == zlib.crc32((tmp_path / "b.svg").read_bytes())


def test_what_a_figure_cannot_show_is_said(shown, tmp_path):
    with pytest.raises(ValueError, match=r"must end in .png, .svg, .pdf, but is curve.txt"):
        write_figure(shown, tmp_path / "curve.txt")
    with pytest.raises(ValueError, match="unknown metric 'acuracy'; known are accuracy"):
        write_figure(shown, tmp_path / "curve.pdf", "acuracy")
    made_up.write(tmp_path, made_up.records("bald", 0, experiment="one"))
    made_up.write(tmp_path, made_up.records("bald", 0, experiment="two"))
    with pytest.raises(ValueError, match="shows one experiment, but these runs are of 2: one, two; name one folder"):
        write_figure(summary(load(tmp_path)), tmp_path / "curve.pdf")
    bare = made_up.records("bald", 0)
    for record in bare:
        del record["ece"]
    made_up.write(tmp_path / "bare", bare)
    with pytest.raises(ValueError, match="have no ece; choose from accuracy, nll, brier"):
        write_figure(summary(load(tmp_path / "bare")), tmp_path / "curve.pdf", "ece")


def test_the_style_of_a_figure_ends_with_it(shown, tmp_path):
    before = mpl.rcParams["font.size"]
    write_figure(shown, tmp_path / "curve.png")
    assert mpl.rcParams["font.size"] == before


# ── LaTeX ────────────────────────────────────────────────────────────────────────────────────────


def test_the_table_is_a_tabular_of_booktabs(shown, tmp_path):
    shown.latex(tmp_path / "table.tex")
    lines = (tmp_path / "table.tex").read_text(encoding="utf-8").splitlines()
    assert lines[0] == r"% By balent report; needs \usepackage{booktabs}"
    body = lines[lines.index(r"\toprule") + 1 : lines.index(r"\bottomrule")]
    assert [line.partition(" & ")[0] for line in body] == [
        "strategy", r"\midrule", "balentacq", r"mine\_own.py:top\_k", "random"
    ]  # fmt: skip
    (columns,) = re.findall(r"\\begin\{tabular\}\{(l(r+))\}", "\n".join(lines))
    assert {line.count(" & ") for line in body if line != r"\midrule"} == {len(columns[1])}
    assert all(line.endswith(r" \\") for line in body if line != r"\midrule")
    text = "\n".join(line for line in lines if not line.startswith("%"))
    assert not set(text) & {"±", "−", "–"}
    assert not re.search(r"(?<!\\)[%#]|(?<!\\)_", text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (r"a\b_c", r"a\textbackslash{}b\_c"),
        ("38 % (−1 to 2) ± <{~^&$#}>", r"38 \% ($-$1 to 2) $\pm$ $<$\{\textasciitilde{}\textasciicircum{}\&\$\#\}$>$"),
    ],
)
def test_every_character_that_latex_reads_is_escaped(text, expected):
    assert escaped(text) == expected
