"""project.toml: written by balent, edited by people."""

from pathlib import Path

import pytest

from balent.project import settings
from balent.project.settings import Look, Settings, absolute


def test_what_is_written_is_read_again(tmp_path):
    given = Settings(
        "text",
        "../tickets.csv",
        text='bo"dy\\',
        seed=3,
        goal=0.95,
        classes=(Look("billing", "1", 'about "money"\nand invoices'), Look("Störung ✓", "2")),
    )
    settings.save(tmp_path, given)
    assert settings.read(tmp_path) == given


def test_a_file_of_few_lines_has_defaults(tmp_path):
    (tmp_path / settings.NAME).write_text('kind = "images"\ndata = "../photos"\ngoal = 0\n')
    assert settings.read(tmp_path) == Settings("images", "../photos")


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ('kind = "songs"', "kind must be one of images, text, table, features, but is 'songs'"),
        ("audit = -1", "audit must be 0 or more"),
        ('audit = "often"', "audit must be of type whole number, but is 'often'"),
        ("audit = true", "audit must be of type whole number"),
        ('colour = "red"', "'colour' is not a setting; settings are kind, data"),
        ("format = 9", "format is 9, but this version of balent reads format 1"),
        ("seed = ", "cannot be read"),
        ("goal = 1.5", "goal between 0 and 1"),
    ],
)
def test_a_bad_line_is_named(tmp_path, line, complaint):
    lines = ['kind = "images"', 'data = "x"']
    kept = [other for other in lines if not line.startswith(other[:4])]
    (tmp_path / settings.NAME).write_text("\n".join([*kept, line]))
    with pytest.raises(ValueError, match=complaint):
        settings.read(tmp_path)


def test_a_folder_without_settings_is_not_a_project(tmp_path):
    with pytest.raises(FileNotFoundError, match="is not a project"):
        settings.read(tmp_path)


def test_data_and_model_are_found_from_the_project_on(tmp_path):
    project = tmp_path / "p" / "photos.balent"
    found = Settings("images", "", model="../mine.py:factory").moved(project, tmp_path / "p" / "photos")
    assert found.data == "../photos"
    assert found.place(project) == tmp_path / "p" / "photos"
    assert found.factory(project) == f"{tmp_path / 'p' / 'mine.py'}:factory"
    assert found.place(Path("photos.balent")) == Path.cwd() / "photos"


def test_local_models_are_found_from_any_folder_and_other_names_stay(tmp_path, monkeypatch):
    """A folder that has the name of a strategy or of a kind of features does not hide it."""
    monkeypatch.chdir(tmp_path)
    for folder in ("auto", "tfidf", "minilm", "models"):
        (tmp_path / folder).mkdir()
    for file in ("minilm/tokenizer.json", "models/small.safetensors", "mine.py"):
        (tmp_path / file).touch()
    names = ["", "auto", "tfidf", "random:resnet10", "owner/name", "absent.py:name", "power:bald(beta=8)"]
    assert [absolute(name) for name in names] == names
    for name in ("minilm", "models/small.safetensors", "mine.py:name(beta=8)"):
        assert absolute(name) == f"{tmp_path}/{name}"
