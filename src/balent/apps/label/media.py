"""Pictures as the page shows them: decoded and written anew, never the user's file itself.

So no metadata leaves the machine (where a photo was taken, say), and nothing but pixels reaches a browser. Pictures
are kept by their content in `thumbs/`: a renamed image has its picture already, a changed one gets a new one.
"""

import io
from pathlib import Path

from balent.apps.label.said import Refused
from balent.data.formats.image_file import Picture, TooLarge, fitting
from balent.data.outputs import write_unsynced
from balent.loop.journal import in_words
from balent.project.project import Project

SIZES = {"small": 320, "screen": 1280, "full": 4096}  # pixels of the longer side
LOSSLESS = 256  # pictures up to this size are shown enlarged: JPEG's blocks would be visible
QUALITY = 88
TYPES = {".jpg": "image/jpeg", ".png": "image/png"}
ENDS = (b"\xff\xd9", b"IEND\xaeB`\x82")  # of whole files: a machine that failed may have left parts


def picture(path: Path, fingerprint: str, size: str, thumbs: Path) -> tuple[bytes, str]:
    """The bytes of a picture, and their type."""
    for ending, kind in TYPES.items():
        kept = _place(thumbs, fingerprint, size, ending)
        if kept.exists() and (found := kept.read_bytes()).endswith(ENDS):
            return found, kind
    content, ending = made(path, SIZES[size])
    place = _place(thumbs, fingerprint, size, ending)
    with in_words(place):  # unsynced: labels are synced to the same disk meanwhile
        place.parent.mkdir(parents=True, exist_ok=True)
        write_unsynced(place, content)
    return content, TYPES[ending]


def of_item(project: Project, number: int, size: str) -> tuple[bytes, str]:
    """The picture of an item, never of a file outside of the data."""
    item = project.items[number]
    try:
        path = project.kind.content(item.id)
    except PermissionError as outside:
        raise Refused(403, "this file lies outside of the data") from outside
    return picture(path, item.fingerprint, size, project.path / "thumbs")


def made(path: Path, side: int) -> tuple[bytes, str]:
    """Encodes the pixels of a file, and says how."""
    try:
        image = fitting(Picture(str(path), lambda: path.open("rb")), side)
    except Exception as error:  # a damaged image can raise anything
        raise Refused(415, f"this image cannot be read: {_reason(error)}; skip it") from error
    image.info.clear()  # comments and profiles would be written, too
    out = io.BytesIO()
    if max(image.size) <= LOSSLESS:
        image.save(out, "PNG")
        return out.getvalue(), ".png"
    image.save(out, "JPEG", quality=QUALITY)
    return out.getvalue(), ".jpg"


def _reason(error: Exception) -> str:
    """In words, without the path of the file."""
    if isinstance(error, FileNotFoundError):
        return "it is not there any more"
    large = isinstance(error, TooLarge) or "DecompressionBomb" in type(error).__name__
    return str(error) if large else "it is damaged, or not an image"


def _place(thumbs: Path, fingerprint: str, size: str, ending: str) -> Path:
    return thumbs / fingerprint[:2] / f"{fingerprint[2:34]}-{size}{ending}"
