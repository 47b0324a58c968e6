"""The command line: the same picks from every format, files that are whole or absent, errors in one sentence."""

import csv
import io
import os

import numpy as np
import pytest
from helpers.examples import logits, probabilities
from helpers.long_form import long_form, write_csv, write_parquet
from typer.testing import CliRunner

import balent
from balent import MEASURES, STRATEGIES, kernels
from balent.apps import cli

P = probabilities(40, 12, 3).numpy()


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs `balent …` in an empty directory with p.npy in it, on a screen that is wide enough."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.out, "width", 200)
    np.save("p.npy", P)

    def invoke(*words, code=0):
        result = CliRunner().invoke(cli.app, [str(word) for word in words], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return invoke


def table(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def column(rows, name):
    return [float(row[name]) for row in rows]


# ── score ────────────────────────────────────────────────────────────────────────────────────────


def test_the_best_are_printed_with_how_far_they_can_be_trusted(run):
    lines = run("score", "p.npy", "-m", "bald", "--top", 3).stdout.splitlines()
    picks = balent.select(P, "bald", 3)
    assert lines[0].split() == ["measure", "rank", "point", "score"]
    for rank, (index, score) in enumerate(zip(*picks, strict=True), 1):
        assert lines[rank].split() == ["bald", str(rank), str(index), f"{score:.6g}"]
    assert lines[4] == f"bald: two halves of the draws agree on {picks.stability:.0%} of the top 3"


def test_ten_are_printed_when_nothing_is_said_and_no_more_than_there_are(run):
    assert len(run("score", "p.npy").stdout.splitlines()) == 1 + 10 + 1
    np.save("few.npy", P[:4])
    assert len(run("score", "few.npy").stdout.splitlines()) == 1 + 4 + 1


def test_every_format_gives_the_same_picks(run, tmp_path):
    np.savez("p.npz", P)
    np.savez_compressed("packed.npz", first=P[:3], second=P)
    write_csv(tmp_path / "p.csv", long_form(P))
    write_parquet(tmp_path / "p.parquet", long_form(P))
    expected = run("score", "p.npy", "--top", 7).stdout
    assert balent.select(P, "balentacq", 1).indices[0] == int(expected.splitlines()[1].split()[2])
    for words in (["p.npz"], ["packed.npz", "--key", "second"], ["p.csv"], ["p.parquet"]):
        assert run("score", *words, "--top", 7).stdout == expected


def test_a_csv_without_top_has_every_point_in_order(run):
    run("score", "p.npy", "-m", "bald", "-m", "entropy", "-o", "scores.csv")
    rows = table("scores.csv")
    assert list(rows[0]) == ["point", "bald", "entropy"]
    assert [int(row["point"]) for row in rows] == list(range(40))
    assert column(rows, "bald") == balent.score(P, "bald").tolist()
    assert column(rows, "entropy") == balent.score(P, "entropy").tolist()


def test_a_csv_with_top_has_a_row_for_each_measure_and_rank(run):
    assert (
        "wrote picks.csv"
        in run("score", "p.npy", "-m", "bald", "-m", "balentacq", "--top", 5, "-o", "picks.csv").stderr
    )
    rows = table("picks.csv")
    assert list(rows[0]) == ["measure", "rank", "point", "score"]
    assert [(row["measure"], row["rank"]) for row in rows] == [
        (m, str(r)) for m in ("bald", "balentacq") for r in range(1, 6)
    ]
    for i, name in enumerate(("bald", "balentacq")):
        picks = balent.select(P, name, 5)
        assert [int(row["point"]) for row in rows[5 * i : 5 * i + 5]] == picks.indices.tolist()
        assert column(rows[5 * i : 5 * i + 5], "score") == pytest.approx(picks.scores.tolist(), rel=1e-9)


@pytest.mark.parametrize("top", [[], ["--top", "6"]])
def test_errors_are_those_of_the_library(run, top):
    run("score", "p.npy", "-m", "bald", "-m", "random", "--error", *top, "-o", "scores.csv")
    _, errors = balent.score(P, "bald", with_error=True)
    rows = table("scores.csv")
    if top:
        rows = [row for row in rows if row["measure"] == "bald"]
        expected, came = [errors[int(row["point"])] for row in rows], column(rows, "error")
    else:
        assert list(rows[0]) == ["point", "bald", "bald_error", "random", "random_error"]
        expected, came = errors, column(rows, "bald_error")
    assert came == pytest.approx(list(expected), rel=1e-12)


def test_every_measure_in_one_pass(run):
    run("score", "p.npy", *(word for name in MEASURES for word in ("-m", name)), "-o", "all.csv")
    rows = table("all.csv")
    assert list(rows[0]) == ["point", *MEASURES]
    for name in MEASURES:
        assert column(rows, name) == balent.score(P, name).tolist()


def test_a_measure_named_twice_is_computed_once(run):
    run("score", "p.npy", "-m", "bald", "-m", "bald", "-o", "scores.csv")
    assert list(table("scores.csv")[0]) == ["point", "bald"]


def test_logits_are_named_as_such(run):
    z = logits(20, 5, 3).numpy()
    np.save("z.npy", z)
    run("score", "z.npy", "--logits", "-m", "bald", "-o", "scores.csv")
    assert column(table("scores.csv"), "bald") == balent.score(z, "bald", logits=True).tolist()
    assert (
        "pass logits=True (on the command line: --logits) (at point 0, draw 0)" in run("score", "z.npy", code=2).stderr
    )


@pytest.mark.parametrize("points", [1, 7])
@pytest.mark.parametrize("options", [["--top", "8"], ["--top", "8", "--error"], ["-o", "out.csv"]])
def test_nothing_depends_on_the_size_of_blocks(run, options, points, monkeypatch, tmp_path):
    """Not even the random scores."""
    words = ["score", "p.npy", "-m", "balentacq", "-m", "random", *options]
    whole = run(*words).stdout + "".join(f.read_text() for f in tmp_path.glob("out.csv"))
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", points * 12 * 3)
    assert run(*words).stdout + "".join(f.read_text() for f in tmp_path.glob("out.csv")) == whole


def test_the_seed_is_that_of_the_random_measure(run):
    one, again, other = (run("score", "p.npy", "-m", "random", "--seed", s).stdout for s in (1, 1, 2))
    assert one == again != other
    run("score", "p.npy", "-m", "random", "--seed", 5, "-o", "scores.csv")
    assert column(table("scores.csv"), "random") == balent.score(P, "random", seed=5).tolist()


def test_one_draw_has_scores_but_no_stability_and_no_error(run):
    np.save("one.npy", P[:, :1])
    assert "halves" not in run("score", "one.npy", "-m", "entropy", "--top", 2).stdout
    assert (
        "needs at least 2 draws, but the number of draws is 1"
        in run("score", "one.npy", "-m", "entropy", "--error", code=2).stderr
    )


@pytest.mark.parametrize("suffix", ["csv", "parquet"])
def test_points_are_called_by_their_names(run, suffix, tmp_path):
    """Also where rich would read [bold] as a style, and where a CSV needs quotes."""
    names = ["[bold]a.png", "b,c.png", "d e.png", 'f".png', "gräser.png"]
    write = write_csv if suffix == "csv" else write_parquet
    write(tmp_path / f"named.{suffix}", long_form(P[:5], names))
    order = balent.select(P[:5], "bald", 5).indices.tolist()
    printed = run("score", f"named.{suffix}", "-m", "bald").stdout.splitlines()[1:6]
    assert all(names[i] in line for i, line in zip(order, printed, strict=True))
    run("score", f"named.{suffix}", "-m", "bald", "-o", "scores.csv")
    assert [row["point"] for row in table("scores.csv")] == names
    run("score", f"named.{suffix}", "-m", "bald", "--top", 5, "-o", "picks.csv")
    assert [row["point"] for row in table("picks.csv")] == [names[i] for i in order]


def test_the_example_needs_no_file(run):
    assert run("score", "--example", "--top", 2).stdout.splitlines()[1].split()[:2] == ["balentacq", "1"]


# ── a file is whole or absent ────────────────────────────────────────────────────────────────────


def spoil_last_point():
    p = P.copy()
    p[39, 3, 1] = np.nan
    np.save("bad.npy", p)


def test_a_run_that_fails_leaves_no_file(run, tmp_path, monkeypatch):
    """The last of many blocks is bad: rows were written before, and are gone."""
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", 5 * 12 * 3)
    spoil_last_point()
    run("score", "bad.npy", "-o", "scores.csv", code=2)
    assert sorted(f.name for f in tmp_path.iterdir()) == ["bad.npy", "p.npy"]


def test_a_run_that_fails_leaves_the_old_file_as_it_was(run, tmp_path, monkeypatch):
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", 5 * 12 * 3)
    spoil_last_point()
    (tmp_path / "scores.csv").write_text("old")
    run("score", "bad.npy", "-o", "scores.csv", code=2)
    assert (tmp_path / "scores.csv").read_text() == "old"
    run("score", "p.npy", "-o", "scores.csv")
    assert len(table("scores.csv")) == 40


# ── names that others made ───────────────────────────────────────────────────────────────────────


def test_a_point_called_like_a_formula_is_text_for_a_spreadsheet(run, tmp_path):
    """Defect: a spreadsheet that opens the picks runs =cmd|…"""
    names = ["=cmd|' /C calc'!A0", "@b", "+c", "-d", "e"]
    write_csv(tmp_path / "named.csv", long_form(P[:5], names))
    written = io.StringIO(run("score", "named.csv", "-m", "bald", "-o", "-").stdout)
    assert {row["point"] for row in csv.DictReader(written)} == {f"'{name}" for name in names[:4]} | {"e"}


def test_a_point_cannot_give_orders_to_the_terminal(run, tmp_path):
    write_csv(tmp_path / "named.csv", long_form(P[:1], ["a\x1b[2Jb"]))
    result = run("score", "named.csv", "-m", "bald")
    assert "a␛[2Jb" in result.stdout
    assert "\x1b" not in result.output


def test_files_with_names_in_another_encoding(run, tmp_path):
    """Defect: UnicodeEncodeError in what is said about them."""
    odd = os.fsdecode(b"gr\xffser")
    assert "there is no file gr�ser.npy" in run("score", f"{odd}.npy", code=2).stderr
    np.save(f"{odd}.npy", P)
    assert "wrote gr�ser.csv" in run("score", f"{odd}.npy", "-o", f"{odd}.csv").stderr
    assert len(table(f"{odd}.csv")) == 40


# ── errors in one sentence ───────────────────────────────────────────────────────────────────────


def sentence(result):
    """What was said on standard error, without the tracebacks that a person cannot read."""
    assert "Traceback" not in result.output
    assert result.stdout == ""
    assert result.stderr.startswith("error: ")
    return result.stderr.removeprefix("error: ").strip()


@pytest.mark.parametrize("options", [[], ["--error"], ["--top", "3"], ["-o", "scores.csv"]])
def test_the_position_of_a_bad_row_is_that_in_the_file(run, options, monkeypatch):
    monkeypatch.setattr("balent.acquisition.draws.BLOCK", 5 * 12 * 3)
    spoil_last_point()
    said = sentence(run("score", "bad.npy", *options, code=2))
    assert said == "probabilities must be finite, but class 1 is NaN; look at the model's output (at point 39, draw 3)"


@pytest.mark.parametrize("top", [0, -2, 41])
def test_a_top_that_the_pool_cannot_serve(run, top):
    said = sentence(run("score", "p.npy", "--top", top, code=2))
    assert said == f"k must be between 1 and the 40 points of the pool, but is {top}"


def test_an_unknown_measure_is_answered_before_the_file_is_scored(run):
    said = sentence(run("score", "p.npy", "-m", "balentaqc", code=2))
    assert said.startswith("there is no measure 'balentaqc'; did you mean balentacq")


def test_words_in_brackets_are_not_lost(run):
    """rich takes [pool, draws, classes] for a style, and leaves it out."""
    np.save("flat.npy", P[0])
    said = sentence(run("score", "flat.npy", code=2))
    assert said.startswith("draws must have three axes [pool, draws, classes], but have shape (12, 3)")


@pytest.mark.parametrize("words", [[], ["p.npy", "--example"]])
def test_one_source_is_named(run, words):
    assert sentence(run("score", *words, code=2)).startswith("name one file of probabilities, or give --example")


def test_a_file_that_is_not_there(run):
    assert sentence(run("score", "q.npy", code=2)) == "there is no file q.npy"


def test_whole_numbers_are_no_probabilities(run):
    np.save("labels.npy", np.zeros((3, 4, 5), dtype=np.int64))
    assert "must be float16, float32 or float64, but are int64" in sentence(run("score", "labels.npy", code=2))


def test_a_directory_that_is_not_there(run):
    assert "No such file or directory" in sentence(run("score", "p.npy", "-o", "nowhere/scores.csv", code=2))


# ── list and help ────────────────────────────────────────────────────────────────────────────────


def test_the_list_has_every_measure_and_the_kernel_that_serves(run):
    said = run("list").stdout
    for name, measure in MEASURES.items():
        assert any(line.split()[0] == name and measure.__doc__[:20] in line for line in said.splitlines() if line)
    assert all(name in said for name in (*STRATEGIES, "power:<measure>", "jitter:<measure>", "diverse:<measure>"))
    assert said.splitlines()[-1].split(maxsplit=1) == ["kernel", f"compiled, {kernels.active()}"]


def test_the_list_says_when_plain_torch_serves(run, use_kernel):
    use_kernel("torch")
    assert "plain torch" in run("list").stdout.splitlines()[-1]


def test_no_command_is_a_question_for_help(run):
    result = CliRunner().invoke(cli.app, [])
    assert "score" in result.output
    assert "list" in result.output


def test_scores_on_the_screen_are_numbers_not_tensors(run):
    assert "tensor" not in run("score", "p.npy", "--error").stdout
