"""Images for a page of another origin: those of the project by their secret address, and nothing else."""

import io
import os
import urllib.error
import urllib.request

import pytest
from helpers.labelling import of_pictures
from PIL import Image

from balent.apps.connect.image_server import served_at, serving

ORIGIN = "http://127.0.0.1:8080"


@pytest.fixture
def photos(tmp_path):
    return of_pictures(tmp_path, ["a.png", "b/é.png"])


@pytest.fixture
def place(photos):
    with serving(photos, 0, f"{ORIGIN}/label/") as port:
        yield served_at(photos, f"http://127.0.0.1:{port}")


def answer(url, method="GET"):
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    try:
        return opener.open(urllib.request.Request(url, method=method), timeout=10)
    except urllib.error.HTTPError as error:
        return error


def test_an_image_is_served_re_encoded_to_the_page_of_label_studio(photos, place):
    for number in (0, 1):
        with answer(place(number)) as found:
            assert found.status == 200
            assert found.headers["Access-Control-Allow-Origin"] == ORIGIN
            assert found.headers["X-Content-Type-Options"] == "nosniff"
            assert found.headers["Content-Type"] == "image/png"
            assert Image.open(io.BytesIO(found.read())).size == (8, 8)
    with answer(place(0), "HEAD") as found:
        assert (found.status, found.read()) == (200, b"")


def test_no_other_address_has_anything(photos, place):
    good = place(0)
    base, number, code = good.rsplit("/", 2)
    other = place(1).rsplit("/", 1)[1]
    root = base.removesuffix("/media")
    for url in (
        *(f"{base}/{number}", f"{base}/{number}/", f"{base}/1/{code}", f"{base}/0/{other}", f"{base}/99/{code}"),
        *(f"{good}/", f"{good}?x=1", f"{good[:-1]}0" if good[-1] != "0" else f"{good[:-1]}1", f"{base}/-1/{code}"),
        *(f"{root}/", f"{root}/photos/a.png", f"{root}/media/../a.png", f"{root}/%2e%2e/%2e%2e/etc/passwd"),
    ):
        with answer(url) as found:
            assert found.status == 404, url
            assert b"no such picture" in found.read()
    with answer(good, "POST") as found:
        assert found.status == 501


def test_a_link_that_leads_out_of_the_data_is_refused(photos, place, tmp_path):
    (tmp_path / "secret.png").write_bytes((tmp_path / "photos" / "a.png").read_bytes())
    (tmp_path / "photos" / "a.png").unlink()
    os.symlink(tmp_path / "secret.png", tmp_path / "photos" / "a.png")
    with answer(place(0)) as found:
        assert found.status == 403


def test_a_damaged_image_is_said_without_a_path(photos, place, tmp_path):
    (tmp_path / "photos" / "a.png").write_bytes(b"no image")
    with answer(place(0)) as found:
        assert found.status == 415
        assert str(tmp_path).encode() not in found.read()


def test_another_content_has_another_address(photos, tmp_path):
    before = served_at(photos, "")(0)
    Image.new("RGB", (9, 9)).save(tmp_path / "photos" / "a.png")
    photos.refresh()
    assert served_at(photos, "")(0) != before


def test_a_port_that_is_taken_is_said(photos):
    with (
        serving(photos, 0, ORIGIN) as port,
        pytest.raises(OSError, match=f"cannot be served at port {port}"),
        serving(photos, port, ORIGIN),
    ):
        pass
