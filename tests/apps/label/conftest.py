"""Desks over small projects. A project is made once and copied: making one takes a dozen writes to disk."""

import shutil

import pytest
from helpers.labelling_page import Clock, desk_of, of_rows

from balent import Project


@pytest.fixture
def clock():
    return Clock()


@pytest.fixture(scope="session")
def rows_of(tmp_path_factory):
    """Copies a project of rows into a folder."""
    made = {}

    def copied(folder, items=60, **settings):
        about = (items, repr(sorted(settings.items())))
        if about not in made:
            made[about] = tmp_path_factory.mktemp("made")
            of_rows(made[about], items, **settings)
        shutil.copytree(made[about], folder, dirs_exist_ok=True)
        return Project(folder / "rows.balent")

    return copied


@pytest.fixture
def desk(tmp_path, clock, rows_of):
    """A desk over 60 rows. Nothing is labelled, and no worker has said anything."""
    return desk_of(rows_of(tmp_path), clock)


@pytest.fixture
def desk_with(tmp_path, clock, rows_of):
    """Makes such a desk with settings of the project."""

    def made(items=60, **settings):
        return desk_of(rows_of(tmp_path, items, **settings), clock)

    return made
