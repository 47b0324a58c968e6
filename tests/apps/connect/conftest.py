"""A project of rows, a stand-in for Label Studio, and what connects them."""

import pytest
from helpers.label_studio import PERSONAL, Stub, served
from helpers.labelling import of_rows

from balent import Project
from balent.apps.connect.bridge import Bridge
from balent.apps.connect.http_json import Server
from balent.apps.connect.labelstudio import LabelStudio
from balent.apps.connect.secret_token import Token
from balent.apps.connect.task_data import local_files


@pytest.fixture
def stub():
    return Stub()


@pytest.fixture
def url(stub):
    with served(stub) as address:
        yield address


@pytest.fixture
def project(tmp_path):
    return of_rows(tmp_path, items=30)


@pytest.fixture
def bridge_of(url):
    """Connects a project; a new bridge each time, as after a kill."""

    def made(project, number=None, title=None, **options):
        fresh = Project(project.path, say=lambda _: None)
        server = Server(url, Token(PERSONAL, "token.txt"), sleep=lambda _: None)
        options = {"k": 15, "sleep": lambda _: None, **options}
        bridge = Bridge(fresh, LabelStudio(server), local_files(fresh), **options)
        bridge.connect(number, title)
        return bridge

    return made
