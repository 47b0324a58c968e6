"""balent acquire and balent score over shards."""

import csv
from pathlib import Path

import numpy as np
import pytest
from helpers import sharded
from helpers.examples import probabilities
from PIL import Image
from pyarrow import parquet
from typer.testing import CliRunner

from balent.apps import cli
from balent.apps.cli import screen

X = np.random.default_rng(0).standard_normal((sharded.ENDS[-1], 4)).astype(np.float32)
P = probabilities(50, 12, 3).numpy()
MODELS = """
import torch
from torch import nn

def classifier():
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.ReLU(), nn.Linear(8, 3))

class Pixels(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Sequential(nn.Flatten(), nn.Linear(3 * 8 * 8, 8), nn.Dropout(0.5), nn.Linear(8, 3))

    def forward(self, x):
        return self.net(x.float() / 255)

def pixels():
    torch.manual_seed(0)
    return Pixels()
"""


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Runs `balent …` in a directory with models.py and shards of each format."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(cli.out, "width", 200)
    Path("models.py").write_text(MODELS)
    for name in ("npy", "parquet", "tar"):
        Path(name).mkdir()
        sharded.FORMATS[name](Path(name), X)

    def invoke(*words, code=0):
        result = CliRunner().invoke(cli.app, [str(word) for word in words], catch_exceptions=False)
        assert result.exit_code == code, result.output
        return result

    return invoke


def rows(path):
    with open(path, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def acquired(run, *words):
    run("acquire", "models.py:classifier", *words, "-k", 5, "-s", "bald", "-o", "picks.csv")
    return rows("picks.csv")


def test_folders_patterns_and_schemes_are_pools(run):
    expected = acquired(run, "npy")
    assert list(expected[0]) == ["rank", "id", "score", "point"]
    assert expected[0]["id"].startswith("npy/00")
    for words in ("npy/*.npy", "parquet", "parquet/*.parquet", "tar", f"file://{Path.cwd()}/parquet"):
        found = acquired(run, words)
        assert [(row["point"], row["score"]) for row in found] == [(row["point"], row["score"]) for row in expected]


def test_ids_are_keys_and_picks_can_be_parquet(run):
    picks = acquired(run, "parquet", "--column", "x", "--key", "id")
    run("acquire", "models.py:classifier", "parquet", "--key", "id", "-k", 5, "-s", "bald", "-o", "picks.parquet")
    found = parquet.read_table("picks.parquet").to_pydict()
    assert found["rank"] == [1, 2, 3, 4, 5]
    assert found["id"] == [row["id"] for row in picks]
    assert found["id"][0].startswith("item-")
    assert found["point"] == [int(row["point"]) for row in picks]


def test_an_array_of_an_npz_is_chosen_by_column_or_by_the_old_word(run):
    np.savez("two.npz", pool=X, other=X[:9])
    assert acquired(run, "two.npz", "--column", "pool") == acquired(run, "two.npz", "--key", "pool")


def test_what_cannot_be_read_is_named_or_left_out_and_listed(run):
    Path("parquet/000.parquet").write_bytes(b"PAR1 and no more")
    words = ("acquire", "models.py:classifier", "parquet", "-k", 5, "-s", "bald")
    assert "error: parquet/000.parquet cannot be used from row 0" in run(*words, code=2).stderr
    said = run(*words, "--skip-bad").stderr
    assert "left out of 3 shards:\n  parquet/000.parquet: all rows: it is not a readable parquet file" in said


def test_scores_of_shards_go_to_a_folder(run):
    run("acquire", "models.py:classifier", "parquet", "-k", 5, "-s", "bald", "--scores", "scores/")
    assert len(parquet.read_table("scores/003.parquet")) == 1301


def test_a_manifest_is_kept(run):
    acquired(run, "npy", "--manifest", "pool.jsonl")
    assert len(Path("pool.jsonl").read_text().splitlines()) == 4


def test_a_folder_of_images_is_a_pool_whose_ids_are_paths(run):
    Path("photos/more").mkdir(parents=True)
    for i in range(6):
        pixels = np.random.default_rng(i).integers(0, 255, (12, 10 + i, 3), np.uint8)
        Image.fromarray(pixels).save(f"photos/{'more/' * (i % 2)}{i}.png")
    for words in ("photos", "photos/**/*.png"):
        run("acquire", "models.py:pixels", words, "--size", 8, "-k", 3, "-s", "bald", "-o", "picks.csv")
        assert {row["id"] for row in rows("picks.csv")} < {f"photos/{'more/' * (i % 2)}{i}.png" for i in range(6)}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ("nothing/*.npy", "nothing/*.npy has no shards; they end in .npy, .parquet, .tar, .arrow or images"),
        ("nothing.parquet", "there is no file nothing.parquet"),
        ("what://x/*.npy", "what://x/*.npy cannot be opened, since Protocol not known: what"),
    ],
)
def test_words_that_are_no_pool_are_answered(run, words, said):
    assert said in run("acquire", "models.py:classifier", words, "-k", 5, code=2).stderr


# ── score ────────────────────────────────────────────────────────────────────────────────────────


@pytest.fixture
def draws(run):
    """Draws in one file, and in shards of both formats."""
    np.save("p.npy", P)
    for kind in ("a", "b"):
        Path(kind).mkdir()
    for i, part in enumerate(np.split(P, [20, 20, 41])):
        np.save(f"a/{i}.npy", part)
        kind = sharded.pa.list_(sharded.pa.list_(sharded.pa.float64()))
        table = sharded.pa.table({"p": sharded.pa.array(part.tolist(), kind), "id": [str(x[0, 0]) for x in part]})
        parquet.write_table(table, f"b/{i}.parquet", row_group_size=7)


@pytest.mark.parametrize("words", [["a"], ["a/*.npy"], ["b"], ["b", "--column", "p", "--key", "id"]])
@pytest.mark.parametrize("options", [["--top", 5], ["--top", 5, "--error"], [], ["--error"]])
def test_shards_of_probabilities_are_scored_as_one_file(run, draws, words, options):
    measures = ["-m", "bald", "-m", "balentacq"]
    run("score", "p.npy", *measures, *options, "-o", "one.csv")
    run("score", *words, *measures, *options, "-o", "many.csv")
    one, many = ([{k: v for k, v in row.items() if k != "point"} for row in rows(f)] for f in ("one.csv", "many.csv"))
    assert one == many


def test_points_of_shards_of_probabilities_are_named(run, draws):
    run("score", "a", "--top", 50, "-o", "many.csv")
    assert {row["point"] for row in rows("many.csv")} == {
        f"a/{i}.npy#{row}" for i, part in enumerate(np.split(P, [20, 20, 41])) for row in range(len(part))
    }


def test_shards_that_are_no_draws_are_refused(run):
    assert (
        "each row must be the draws of a point, [draws, classes], but has the shape (4,)"
        in run("score", "npy", code=2).stderr
    )


def test_a_cluster_gives_the_same_file_of_picks_and_goes_on_from_its_journal(run):
    pytest.importorskip("ray", reason="the engine of a cluster needs ray: pip install 'balent[ray]'")
    words = ("parquet", "--column", "x", "--key", "id")
    expected = acquired(run, *words)
    cluster = ("--engine", "ray", "--workers", 2, "--span-rows", 1024, "--resume", "journal")
    assert acquired(run, *words, *cluster) == expected
    [journal] = Path("journal").iterdir()
    assert len(list(journal.glob("*.safetensors"))) == 5  # 1,025 rows are two spans, 1,301 too
    assert acquired(run, *words, *cluster[:-2], "--resume", "journal", "--scores", "scores") == expected
    assert sorted(path.name for path in Path("scores").glob("*.parquet")) == [f"00{i}.parquet" for i in range(4)]


@pytest.mark.parametrize("words", [("--workers", 2), ("--span-rows", 1024), ("--resume", "j"), ("--address", "auto")])
def test_settings_of_a_cluster_are_refused_without_one(run, words):
    said = run("acquire", "models.py:classifier", "npy", "-k", 5, *words, code=2).stderr
    assert f"{words[0]} is for --engine ray, but the engine is local" in said


def test_labelled_points_can_be_named(run):
    """The neighbours of a labelled point are the candidates: with one neighbour of each, these are the picks."""
    np.save("known.npy", X[[7, 2000]] + 1e-4)
    run(
        *("acquire", "models.py:classifier", "npy", "-k", 2, "-o", "picks.csv"),
        *("-s", "seals:bald(neighbours=1)", "--labelled", "known.npy"),
    )
    assert {row["id"] for row in rows("picks.csv")} == {"npy/000.npy#7", f"npy/003.npy#{2000 - sharded.ENDS[3]}"}


def test_a_log_has_lines_about_the_progress(run, monkeypatch):
    """Not only a terminal: a night's job is looked at through its log."""
    monkeypatch.setattr(screen, "QUIET", 0.0)
    said = run("acquire", "models.py:classifier", "npy", "-k", 5, "-s", "bald", "-o", "picks.csv").stderr
    assert f"{len(X)} of {len(X)} points, " in said
    assert "a second, 0:00 left" in said
