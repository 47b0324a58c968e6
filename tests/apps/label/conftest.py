"""Desks over small projects, and browsers. A project is made once and copied: making one takes a dozen writes."""

import shutil

import pytest
from helpers.browser import WIDE, Tab, chromium
from helpers.labelling import pictures
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


@pytest.fixture(scope="module")
def browser():
    """One per file: while it is open, its thread has an event loop, which tests in other files may want to start."""
    with chromium() as browser:
        yield browser


@pytest.fixture
def photos(tmp_path):
    """Forty pictures; nothing is labelled."""
    pictures(tmp_path / "photos", [f"{i:02d}.png" for i in range(40)], size=24)
    return Project.create(tmp_path / "photos.balent", tmp_path / "photos", classes=["cat", "dog", "bird"])


@pytest.fixture
def opened(browser):
    """Opens pages; each in a browser profile of its own, unless a context is given."""
    contexts = []

    def open_(server, path="/", who=None, context=None, **options):
        if context is None:
            # wait_for_function of playwright evaluates text, which the page's policy forbids: that is tested apart.
            context = browser.new_context(bypass_csp=True, **{"viewport": WIDE, **options})
            contexts.append(context)
        tab = Tab(context.new_page())
        tab.page.goto(server.links[who])
        if path != "/":
            tab.page.goto(server.home + path)
        return tab

    yield open_
    for context in contexts:
        context.close()
