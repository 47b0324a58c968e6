"""What is an item of a folder, and what is not."""

import os

import numpy as np
import pytest

from balent.project.kinds import LINK, Given, Images, Table, check_fits
from balent.project.settings import Settings


def write(folder, *names):
    for name in names:
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(name.encode())


def test_images_are_found_in_folders_of_folders_sorted_by_name(tmp_path):
    write(tmp_path, "b.JPG", "a/2.png", "a/1.png", "notes.txt", ".hidden.png", "a/.thumbs/3.png")
    assert [thing.id for thing in Images(tmp_path).found()] == ["a/1.png", "a/2.png", "b.JPG"]


def test_a_project_inside_the_folder_holds_no_images(tmp_path):
    write(tmp_path, "1.png", "photos.balent/project.toml", "photos.balent/thumbs/1.png")
    assert [thing.id for thing in Images(tmp_path).found()] == ["1.png"]


def test_links_are_listed_not_followed(tmp_path):
    write(tmp_path, "data/1.png", "secret/2.png")
    (tmp_path / "data" / "link.png").symlink_to(tmp_path / "secret" / "2.png")
    (tmp_path / "data" / "other").symlink_to(tmp_path / "secret")
    kind = Images(tmp_path / "data")
    assert [thing.id for thing in kind.found()] == ["1.png"]
    assert kind.skipped == {"link.png": LINK, "other": LINK}
    with pytest.raises(PermissionError, match="outside"):
        kind.content("link.png")
    with pytest.raises(PermissionError, match="outside"):
        kind.content("../secret/2.png")
    followed = Images(tmp_path / "data", follow_links=True)
    assert [thing.id for thing in followed.found()] == ["1.png", "link.png", "other/2.png"]


def test_a_link_to_a_folder_above_ends(tmp_path):
    write(tmp_path, "1.png")
    (tmp_path / "again").symlink_to(tmp_path)
    assert [thing.id for thing in Images(tmp_path, follow_links=True).found()] == ["1.png"]


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_a_file_that_may_not_be_read_is_listed_with_the_reason(tmp_path):
    write(tmp_path, "1.png")
    (tmp_path / "1.png").chmod(0)
    kind = Images(tmp_path)
    assert not [*kind.found()]
    assert kind.skipped == {"1.png": "Permission denied"}


def test_names_that_are_not_utf_8_are_ids_too(tmp_path):
    (tmp_path / os.fsdecode(b"caf\xe9.png")).write_bytes(b"x")
    (thing,) = Images(tmp_path).found()
    assert os.fsencode(thing.id) == b"caf\xe9.png"


def test_rows_of_features_have_ids_of_a_file(tmp_path):
    np.save(tmp_path / "x.npy", np.eye(3))
    (tmp_path / "ids.txt").write_text("a\nb\nc\n")
    kind = Given(tmp_path / "x.npy", tmp_path / "ids.txt")
    assert [thing.id for thing in kind.found()] == ["a", "b", "c"]
    assert kind.content("b").tolist() == [0, 1, 0]
    assert len({thing.fingerprint() for thing in kind.found()}) == 3
    (tmp_path / "ids.txt").write_text("a\nb\na\n")
    with pytest.raises(ValueError, match=r"'a' stands in .* twice"):
        Given(tmp_path / "x.npy", tmp_path / "ids.txt")


def test_a_pipe_with_the_name_of_an_image_is_not_waited_for(tmp_path):
    """`balent ask` hung: a pipe that nobody writes to was opened."""
    write(tmp_path, "1.png")
    os.mkfifo(tmp_path / "pipe.jpg")
    kind = Images(tmp_path)
    assert [thing.id for thing in kind.found()] == ["1.png"]
    assert kind.skipped == {"pipe.jpg": "not a file"}


# ── labels that a table has ──────────────────────────────────────────────────────────────────────


def targets(path, content):
    path.write_text(content, encoding="utf-8")
    settings = Settings("table", str(path), id="id", target="y")
    return Table(path, settings).targets()


def test_targets_have_no_blanks_around_them_and_whole_numbers_no_point(tmp_path):
    """Parquet and pandas make 1.0 of 1 where other cells are missing: `--classes 0,1` had no labels."""
    assert targets(tmp_path / "t.csv", "id,a,y\n1,5,  yes\n2,6,no \n3,7,\n4,8,  \n") == {"1": "yes", "2": "no"}
    lines = '{"id": 1, "a": 5, "y": 1.0}\n{"id": 2, "a": 6, "y": null}\n{"id": 3, "a": 6, "y": 0.5}\n'
    assert targets(tmp_path / "t.jsonl", lines) == {"1": "1", "3": "0.5"}


def test_a_target_that_is_no_class_is_named_with_its_line(tmp_path):
    with pytest.raises(ValueError, match=r"t\.csv, line 3, has no label in column 'y': a class name must be one line"):
        targets(tmp_path / "t.csv", 'id,a,y\n1,5,yes\n2,6,"n\no"\n')


def test_a_column_of_measurements_is_no_column_of_classes(tmp_path):
    many = "".join(f"{i},5,{i * 1.5}\n" for i in range(1, 300))
    with pytest.raises(ValueError, match=r"'y' of .* has 299 different values in 299 rows; name another column"):
        targets(tmp_path / "t.csv", f"id,a,y\n{many}")
    ratings = "".join(f"{i},5,{i % 10 / 2}\n" for i in range(300))
    assert len({*targets(tmp_path / "t.csv", f"id,a,y\n{ratings}").values()}) == 10


@pytest.mark.parametrize(
    ("kind", "settings", "name"),
    [
        ("images", {"text": "body"}, "text"),
        ("images", {"target": "y"}, "target"),
        ("images", {"ids": "ids.txt"}, "ids"),
        ("features", {"id": "number"}, "id"),
        ("features", {"features": "tfidf"}, "features"),
        ("table", {"features": "tfidf"}, "features"),
        ("text", {"text": "body", "ids": "ids.txt"}, "ids"),
    ],
)
def test_settings_that_data_have_no_use_for_are_refused(kind, settings, name):
    """They were kept in project.toml and never looked at."""
    with pytest.raises(ValueError, match=f"data of the kind {kind} have no use for {name} = "):
        check_fits(Settings(kind, "data.npy", **settings))


def test_settings_that_fit_are_taken():
    check_fits(Settings("images", "photos", features="mine.npy", ids="ids.txt"))
    check_fits(Settings("features", "rows.npy", ids="ids.txt"))
    check_fits(Settings("features", "shards", id="key"))
    check_fits(Settings("table", "rows.csv", id="id", target="y", features="mine.npy", ids="ids.txt"))
    with pytest.raises(ValueError, match="the name of the column that has the texts"):
        check_fits(Settings("text", "rows.csv"))
