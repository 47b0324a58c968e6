"""Cards: items as the page shows them: a picture by its number, a text, a row of a table."""

from typing import Any

from balent.project.project import Project

LONGEST = 200_000  # characters of a text


class Cards:
    """Reads contents. Data that have changed since are read again."""

    def __init__(self, project: Project) -> None:
        self.project = project

    def of(self, number: int) -> dict[str, Any]:
        """What identifies and shows an item."""
        item, kind = self.project.items[number], self.project.settings.kind
        about = {"item": number, "id": item.id, "kind": kind}
        if kind == "images":
            return about | {"media": f"/media/{number}?v={item.fingerprint[:8]}"}
        if kind == "text":
            return about | {"text": str(self.read(number) or "")[:LONGEST]}
        if kind == "table":
            return about | {"columns": {str(k): plain(v) for k, v in dict(self.read(number) or {}).items()}}
        return about

    def read(self, number: int) -> Any:
        """The content; None if the data have it no more."""
        id = self.project.items[number].id
        for _ in range(2):
            try:
                return self.project.kind.content(id)
            except KeyError:
                self.project.__dict__.pop("kind", None)  # rows were added
        return None


def plain(value: Any) -> Any:
    """A value that JSON has."""
    if value is None or isinstance(value, str | bool | int):
        return value
    if isinstance(value, float):
        return value if abs(value) < float("inf") else str(value)
    return str(value)
