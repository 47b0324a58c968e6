"""Pictures: by number, inside of the data, pixels only; any image that Pillow reads, and nothing that harms."""

import io
import os
import struct
import time
import zlib

import numpy as np
import pytest
from helpers.labelling_page import HOME, client_of, desk_of, of_rows, propose
from PIL import Image, PngImagePlugin

from balent import Project


@pytest.fixture
def photos(tmp_path):
    folder = tmp_path / "photos"
    folder.mkdir()
    return folder


def page(photos, **settings):
    """A browser over a folder of images."""
    project = Project.create(photos.parent / "photos.balent", photos, classes=["cat", "dog"], **settings)
    return client_of(desk_of(project))


def picture(answer):
    assert answer.status_code == 200, answer.text
    return Image.open(io.BytesIO(answer.content))


def noise(width, height, mode="RGB"):
    rng = np.random.default_rng(0)
    return Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)).convert(mode)


# ── which files ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    "path",
    [
        "/media/../../etc/passwd",
        "/media/%2e%2e%2f%2e%2e%2fetc%2fpasswd",
        "/media//etc/passwd",
        "/media/a.png",
        "/media/-1",
        "/media/0.0",
        "/media/0x0",
        "/media/1",
        "/media/99999999999999999999",
        "/media/0/a.png",
        "/media/0%00",
        "/media/",
        "/media/٣",
    ],
)
def test_a_picture_has_a_number_never_a_path(photos, path):
    noise(4, 4).save(photos / "a.png")
    (photos.parent / "secret.txt").write_text("root:")
    answer = page(photos).get(f"{HOME}{path}")
    assert answer.status_code in (404, 307)
    assert "root:" not in answer.text


def test_a_number_of_thousands_of_digits_is_not_found(photos):
    noise(4, 4).save(photos / "a.png")
    assert page(photos).get(f"/media/{'9' * 5000}").status_code == 404


def test_other_kinds_of_data_have_no_pictures(tmp_path):
    assert client_of(desk_of(of_rows(tmp_path))).get("/media/0").status_code == 404


def test_a_link_that_leads_out_of_the_folder_is_no_item(photos):
    """A symlink to /etc/passwd was served by the prototype."""
    noise(4, 4).save(photos / "a.png")
    noise(5, 5).save(photos.parent / "private.png")
    (photos / "b.png").symlink_to(photos.parent / "private.png")
    (photos / "passwd.png").symlink_to("/etc/passwd")
    (photos / "up").symlink_to(photos.parent)
    client = page(photos)
    assert client.get("/api/status").json()["items"] == 1


@pytest.mark.parametrize("folder", [False, True])
def test_a_file_that_became_a_link_out_of_the_folder_is_not_served(photos, folder):
    """Somebody who can write to the folder cannot read the rest of the machine."""
    (photos / "sub").mkdir()
    noise(4, 4).save(photos / "sub" / "a.png")
    (photos.parent / "elsewhere").mkdir()
    noise(5, 5).save(photos.parent / "elsewhere" / "a.png")
    client = page(photos)
    (photos / "sub" / "a.png").unlink()
    if folder:
        (photos / "sub").rmdir()
        (photos / "sub").symlink_to(photos.parent / "elsewhere")
    else:
        (photos / "sub" / "a.png").symlink_to("/etc/passwd")
    answer = client.get("/media/0")
    assert answer.status_code == 403
    assert "root:" not in answer.text


def test_links_are_followed_if_that_is_wanted(photos):
    noise(5, 5).save(photos.parent / "shared.png")
    (photos / "a.png").symlink_to(photos.parent / "shared.png")
    assert picture(page(photos, follow_links=True).get("/media/0")).size == (5, 5)


def test_a_file_that_was_removed_is_not_there(photos):
    noise(4, 4).save(photos / "a.png")
    noise(5, 5).save(photos / "b.png")
    client = page(photos)
    (photos / "a.png").unlink()
    answer = client.get("/media/0")
    assert answer.status_code in (404, 415)
    assert answer.json()["error"]
    assert str(photos) not in answer.text


# ── pixels only ──────────────────────────────────────────────────────────────────────────────────────


def exif(orientation=1):
    found = Image.Exif()
    found[0x0112] = orientation
    found[0x010F] = "Secret Camera"
    found.get_ifd(0x8825)[2] = (59.0, 54.0, 50.0)  # GPS latitude: where the photo was taken
    return found


@pytest.mark.parametrize("size", ["small", "screen", "full"])
@pytest.mark.parametrize("side", [40, 600])
@pytest.mark.parametrize("ending", ["jpg", "png", "webp"])
def test_no_metadata_leave_the_machine(photos, ending, side, size):
    """Where a photo was taken, by which camera, and what its owner wrote into it."""
    more = {"comment": b"secret comment"} if ending == "jpg" else {}
    if ending == "png":
        more["pnginfo"] = PngImagePlugin.PngInfo()
        more["pnginfo"].add_text("Author", "secret comment")
        more["pnginfo"].add_itxt("XML:com.adobe.xmp", "<secret comment>")
    else:
        more["xmp"] = b"<secret comment>"
    noise(side, side).save(
        photos / f"a.{ending}", exif=exif(), icc_profile=b"secret profile" * 20, dpi=(301, 301), **more
    )
    assert b"Secret Camera" in (photos / f"a.{ending}").read_bytes()
    answer = page(photos).get(f"/media/0?size={size}")
    found = picture(answer)
    found.load()
    assert len(found.getexif()) == 0
    for secret in (b"ecret", b"Exif", b"adobe", b"Author"):
        assert secret not in answer.content, secret
    assert not {*found.info} & {"exif", "comment", "xmp", "icc_profile", "photoshop", "Author"}


def test_photos_are_turned_upright(photos):
    """Orientation 6: the right edge of the file is the bottom of the picture."""
    image = Image.new("RGB", (40, 20), "blue")
    image.paste("red", (20, 0, 40, 20))
    image.save(photos / "a.png", exif=exif(6))
    found = picture(page(photos).get("/media/0"))
    assert found.size == (20, 40)
    assert found.getpixel((10, 5)) == (0, 0, 255)
    assert found.getpixel((10, 35)) == (255, 0, 0)


def test_the_file_itself_is_never_served(photos):
    """Also what is small and harmless is written anew."""
    noise(8, 8).save(photos / "a.png", pnginfo=None)
    content = (photos / "a.png").read_bytes()
    trailing = content + b"<script>alert(1)</script>"
    (photos / "a.png").write_bytes(trailing)
    answer = page(photos).get("/media/0")
    assert b"script" not in answer.content
    assert picture(answer).tobytes() == Image.open(io.BytesIO(content)).tobytes()


def test_svg_is_not_served(photos):
    """It may run scripts. Neither by its own name nor by that of an image."""
    svg = b'<svg xmlns="http://www.w3.org/2000/svg"><script>alert(1)</script></svg>'
    noise(4, 4).save(photos / "z.png")
    (photos / "a.svg").write_bytes(svg)
    (photos / "b.png").write_bytes(svg)
    client = page(photos)
    assert client.get("/api/status").json()["items"] == 2
    answer = client.get("/media/0")
    assert answer.status_code == 415
    assert "script" not in answer.text


def bomb(side):
    """A PNG of a few hundred bytes that declares side × side pixels."""

    def chunk(name, data):
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    head = struct.pack(">IIBBBBB", side, side, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", zlib.compress(b"\0" * 1000)) + chunk(b"IEND", b"")
    )


def test_a_file_that_unpacks_to_gigabytes_is_refused_at_once(photos):
    (photos / "a.png").write_bytes(bomb(60_000))
    client = page(photos)
    start = time.monotonic()
    answer = client.get("/media/0")
    assert answer.status_code == 415
    assert "pixels" in answer.json()["error"]
    assert time.monotonic() - start < 2


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"not an image",
        b"\x89PNG\r\n\x1a\n",
        b"\xff\xd8\xff\xe0" + b"x" * 100,
        b"%!PS-Adobe-3.0 EPSF-3.0\n",
        b"GIF89a",
    ],
    ids=repr,
)
def test_an_unreadable_file_is_said_in_a_sentence(photos, content):
    (photos / "a.jpg").write_bytes(content)
    answer = page(photos).get("/media/0")
    assert answer.status_code == 415
    assert "cannot be read" in answer.json()["error"]
    assert str(photos) not in answer.text


def test_half_a_file_is_said_in_a_sentence(photos):
    noise(600, 600).save(photos / "whole.jpg")
    content = (photos / "whole.jpg").read_bytes()
    (photos / "whole.jpg").write_bytes(content[: len(content) // 2])
    assert page(photos).get("/media/0").status_code == 415


# ── every image that people have ─────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("mode", "ending"),
    [
        ("RGB", "jpg"),
        ("L", "jpg"),
        ("CMYK", "jpg"),
        ("RGBA", "png"),
        ("LA", "png"),
        ("P", "png"),
        ("1", "png"),
        ("P", "gif"),
        ("RGB", "bmp"),
        ("RGBA", "webp"),
        ("RGB", "tiff"),
        ("L", "pgm"),
        ("CMYK", "tiff"),
    ],
)
@pytest.mark.parametrize("side", [30, 400])
def test_images_of_every_mode_are_shown(photos, mode, ending, side):
    noise(side, side).convert(mode).save(photos / f"a.{ending}")
    answer = page(photos).get("/media/0")
    assert picture(answer).size == (side, side)
    assert picture(answer).mode == "RGB"
    assert answer.headers["content-type"] == ("image/png" if side == 30 else "image/jpeg")


def test_16_bits_are_brought_to_8(photos):
    values = np.array([[0, 256 * 17], [256 * 128, 65535]], dtype=np.uint16)
    Image.fromarray(values).save(photos / "a.png")
    found = np.asarray(picture(page(photos).get("/media/0")).convert("L"))
    assert found.tolist() == [[0, 17], [128, 255]]


def test_transparent_pixels_are_white(photos):
    Image.new("RGBA", (4, 4), (255, 0, 0, 0)).save(photos / "a.png")
    assert picture(page(photos).get("/media/0")).getpixel((0, 0)) == (255, 255, 255)


@pytest.mark.parametrize(("size", "side"), [("small", 320), ("screen", 1280), ("full", 4096)])
def test_large_images_are_made_smaller(photos, size, side):
    Image.new("RGB", (5000, 2500), "green").save(photos / "a.jpg")
    answer = page(photos).get(f"/media/0?size={size}")
    assert picture(answer).size == (side, side // 2)
    assert answer.headers["content-type"] == "image/jpeg"


def test_small_images_are_shown_as_they_are(photos):
    """The page enlarges them pixel by pixel: JPEG's blocks would be visible."""
    image = noise(28, 28)
    image.save(photos / "a.png")
    client = page(photos)
    for size in ("small", "screen", "full"):
        answer = client.get(f"/media/0?size={size}")
        assert picture(answer).tobytes() == image.tobytes()
        assert answer.headers["content-type"] == "image/png"


def test_a_size_that_is_not_known_is_refused(photos):
    noise(4, 4).save(photos / "a.png")
    assert page(photos).get("/media/0?size=huge").status_code == 422


# ── kept ─────────────────────────────────────────────────────────────────────────────────────────────


def test_a_picture_is_made_once_and_kept_by_its_content(photos):
    noise(600, 400).save(photos / "a.jpg")
    client = page(photos)
    first = client.get("/media/0")
    (kept,) = (photos.parent / "photos.balent" / "thumbs").rglob("*-screen.jpg")
    kept.write_bytes(b"kept\xff\xd9")
    assert client.get("/media/0").content == b"kept\xff\xd9"
    assert "immutable" in first.headers["cache-control"]
    assert "private" in first.headers["cache-control"]


@pytest.mark.parametrize("size", [(600, 400), (60, 40)], ids=["jpeg", "png"])
def test_a_kept_picture_that_a_failing_machine_cut_off_is_made_again(photos, size):
    noise(*size).save(photos / "a.jpg")
    client = page(photos)
    whole = client.get("/media/0").content
    (kept,) = (photos.parent / "photos.balent" / "thumbs").rglob("*-screen.*")
    for part in (b"", whole[:-1]):
        kept.write_bytes(part)
        assert client.get("/media/0").content == whole == kept.read_bytes()


def test_a_picture_does_not_wait_for_the_disk(photos, monkeypatch):
    """Labels do: pictures that were synced beside them made them wait."""
    noise(600, 400).save(photos / "a.jpg")
    client, synced = page(photos), []
    monkeypatch.setattr(os, "fsync", synced.append)
    assert client.get("/media/0").status_code == 200
    assert synced == []


def test_nothing_is_written_beside_the_images(photos):
    noise(600, 400).save(photos / "a.jpg")
    page(photos).get("/media/0")
    assert os.listdir(photos) == ["a.jpg"]


def test_a_changed_image_gets_a_new_picture_and_a_new_address(photos):
    Image.new("RGB", (8, 8), "red").save(photos / "a.png")
    desk = desk_of(Project.create(photos.parent / "photos.balent", photos, classes=["cat", "dog"]))
    propose(desk, [0])
    client = client_of(desk)
    (before,) = client.get("/api/next?tab=t&n=8").json()["items"]
    assert picture(client.get(before["media"])).getpixel((0, 0)) == (255, 0, 0)
    Image.new("RGB", (8, 8), "blue").save(photos / "a.png")
    os.utime(photos / "a.png", ns=(1, 1))
    Project(photos.parent / "photos.balent").refresh()
    (after,) = client.get("/api/next?tab=t&n=8").json()["items"]
    assert after["media"] != before["media"]
    assert picture(client.get(after["media"])).getpixel((0, 0)) == (0, 0, 255)


def test_a_renamed_image_has_its_picture_already(photos):
    Image.new("RGB", (8, 8), "red").save(photos / "a.png")
    client = page(photos)
    client.get("/media/0")
    (photos / "a.png").rename(photos / "b.png")
    Project(photos.parent / "photos.balent").refresh()
    assert client.get("/api/status").json()["items"] == 1
    assert client.get("/media/0").status_code == 200
    assert len([*(photos.parent / "photos.balent" / "thumbs").rglob("*.png")]) == 1
