"""What is an item of a folder, and what is not."""

import os

import numpy as np
import pytest

from balent.project.kinds import LINK, Given, Images


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
