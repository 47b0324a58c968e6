"""Items as tasks of Label Studio: what an annotator sees, and by what an answer finds its item again. No torch here."""

import re
from collections.abc import Callable, Sequence
from typing import Any
from xml.sax.saxutils import quoteattr

from balent.apps.label.cards import Cards
from balent.project.exports import local_file
from balent.project.project import Project
from balent.project.state import DIGITS

OBJECTS = {
    "images": '<Image name="item" value="$image" zoom="true"/>',
    "text": '<Text name="item" value="$text" valueType="text"/>',
    "table": '<Table name="item" value="$columns"/>',
    "features": '<Text name="item" value="$id" valueType="text"/>',
}
CONTROL = re.compile(r"<Choices\b[^>]*\bname=\"label\"[^>]*(?<!/)>", re.S)
Place = Callable[[int], str]  # where the image of an item is


def config(kind: str, classes: Sequence[str]) -> str:
    """How a task is shown and labelled: choices named `label` about an object named `item`."""
    if not classes:
        raise ValueError("Label Studio needs the classes first: balent classes PROJECT --add NAME")
    listed = "".join(f"    {_choice(name)}\n" for name in classes)
    return (
        f'<View>\n  {OBJECTS[kind]}\n  <Choices name="label" toName="item" choice="single" showInline="true">\n'
        f"{listed}  </Choices>\n</View>\n"
    )


def with_choices(config: str, new: Sequence[str]) -> str:
    """The config with more choices; everything else in it stays as its owner wrote it."""
    control = CONTROL.search(config)
    end = config.find("</Choices>", control.end()) if control else -1
    if end < 0:
        raise ValueError(
            'the labelling interface has no <Choices name="label" toName="item">; add it, or leave --project out'
        )
    return config[:end] + "".join(_choice(name) for name in new) + config[end:]


def _choice(name: str) -> str:
    return f"<Choice value={quoteattr(name, {chr(34): '&quot;'})}/>"


class Tasks:
    """Reads contents of items.

    place       where the image of an item is, by its number
    """

    def __init__(self, project: Project, place: Place) -> None:
        self.project, self.place, self._cards = project, place, Cards(project)

    def data(self, number: int) -> dict[str, Any]:
        """What a task has: our id and fingerprint, the content, and what the last question said."""
        item, asked = self.project.items[number], self.project.state.asked.get(number)
        return {
            "id": readable(item.id),
            "fingerprint": item.fingerprint[:DIGITS],
            **self._content(number),
            "why": "" if asked is None else asked.why,
            "probability": None if asked is None or asked.probability is None else round(asked.probability, 6),
        }

    def _content(self, number: int) -> dict[str, Any]:
        kind = self.project.settings.kind
        if kind == "images":
            return {"image": self.place(number)}
        card = self._cards.of(number)
        if kind == "text":
            return {"text": readable(card["text"]) or " "}  # an empty text is refused
        return {"columns": card["columns"]} if kind == "table" else {}


def readable(text: str) -> str:
    """Bytes of file names that are not UTF-8 are written as \\udcff: a server's database may not hold half characters.

    >>> readable("a.png"), readable(chr(0xdcff))
    ('a.png', '\\\\udcff')
    """
    return text.encode("utf-8", "backslashreplace").decode()


def local_files(project: Project) -> Place:
    """Images as Label Studio serves files of its own machine."""
    data = project.settings.place(project.path)
    return lambda number: local_file(data, project.items[number].id)


def named(data: object) -> tuple[str, str | None]:
    """The id and fingerprint in the data of a task; an empty id if it is not one of ours."""
    found = data if isinstance(data, dict) else {}
    id, print = found.get("id"), found.get("fingerprint")
    return (id if isinstance(id, str) else ""), (print if isinstance(print, str) else None)
