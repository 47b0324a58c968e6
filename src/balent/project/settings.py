"""What a person decides of a project, in `project.toml`: readable, and editable by hand.

Labels are not here: the journal has them, and it decides which classes there are. Of classes this file has the keys
and notes; a name that is found only here is added.
"""

import json
import os
import tomllib
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from pathlib import Path
from typing import Any

from balent.data import storage
from balent.loop.journal import write

NAME = "project.toml"
FORMAT = 1
KINDS = ("images", "text", "table", "features")
DUPLICATES = ("once", "keep")
ENGINES = ("local", "ray")
HEAD = "# A balent project. Settings may be edited while no command runs; labels are in journal.ndjson.\n"


@dataclass(frozen=True)
class Look:
    """How a class is shown: the key that labels with it, and a note on what belongs to it."""

    name: str
    key: str = ""
    note: str = ""


@dataclass(frozen=True)
class Settings:
    """The settings of a project.

    kind        images, text, table or features
    data        the folder, file or pattern, relative to the project's folder where it is not absolute; or s3://…
    text, id, target    columns of a table
    ids         the file with the ids of an .npy of features
    features    what computes features: a backbone, tfidf, the folder of a sentence model; or an .npy that has them, if
                `ids` is given; "" is the default of the kind
    model       a model of your own: file.py:factory; "" is Logistic
    strategy    what chooses the next items
    engine      where items are scored: local, or ray for several processes; picks do not depend on it
    seed        of all random choices
    audit       one in this many questions is a random check; 0: none, and no accuracy is shown
    overlap     how many people answer each random check
    duplicates  "once": equal items are labelled once; "keep": each for itself
    follow_links    whether links in the folder of images are followed
    goal        the accuracy to reach, between 0 and 1; 0: none is set
    classes     keys and notes
    """

    kind: str
    data: str
    text: str = ""
    id: str = ""
    target: str = ""
    ids: str = ""
    features: str = ""
    model: str = ""
    strategy: str = "auto"
    engine: str = "local"
    seed: int = 0
    audit: int = 5
    overlap: int = 1
    duplicates: str = "once"
    follow_links: bool = False
    goal: float = 0.0
    format: int = FORMAT
    classes: tuple[Look, ...] = field(default=())

    def __post_init__(self) -> None:
        for name, allowed in {"kind": KINDS, "duplicates": DUPLICATES, "engine": ENGINES}.items():
            if getattr(self, name) not in allowed:
                raise ValueError(f"{name} must be one of {', '.join(allowed)}, but is {getattr(self, name)!r}")
        if self.audit < 0 or self.overlap < 1 or not 0 <= self.goal < 1:
            raise ValueError(
                f"audit must be 0 or more, overlap 1 or more and goal between 0 and 1, but they are {self.audit}, "
                f"{self.overlap} and {self.goal}"
            )

    def place(self, project: Path) -> Path:
        """Where the data are."""
        return Path(os.path.normpath(project.absolute() / self.data))

    def words(self, project: Path) -> str:
        """The data as a command line would name them."""
        return self.data if storage.is_remote(self.data) else str(self.place(project))

    def factory(self, project: Path) -> str:
        """The name of the model's factory; a file is looked for from the project's folder on."""
        file, colon, name = self.model.rpartition(":")
        return f"{os.path.normpath(project.absolute() / file)}{colon}{name}" if file.endswith(".py") else self.model

    def moved(self, project: Path, data: str | os.PathLike[str]) -> "Settings":
        """The same settings with data elsewhere; relative, so that both folders can be moved together."""
        words = os.fspath(data)
        remote = storage.is_remote(words)
        return replace(self, data=words if remote else os.path.relpath(Path(words).absolute(), project.absolute()))


def absolute(name: str) -> str:
    """A strategy `file.py:name` or a local model, which are named from the current folder, as named from any folder.

    Other names stay: a folder `tfidf` that happens to be here is not a model.
    """
    file, ending, function = name.partition(".py:")
    place = Path(f"{file}.py" if ending else name)
    path_like = "/" in name or place.suffix or (place / "tokenizer.json").exists()
    return f"{os.path.abspath(file)}{ending}{function}" if path_like and place.exists() else name


def read(project: Path) -> Settings:
    """The settings of a project's folder."""
    path = project / NAME
    try:
        found = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise FileNotFoundError(f"{project} is not a project: it has no {NAME}; balent ask DATA makes one") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}; mend that line") from error
    try:
        return _settings(found)
    except (TypeError, ValueError) as error:
        raise ValueError(f"{path}: {error}") from error


def save(project: Path, settings: Settings) -> None:
    """Writes the file, completely or not at all."""
    write(project / NAME, text(settings).encode("utf-8", "backslashreplace"))


def text(settings: Settings) -> str:
    """As TOML. Settings that are empty are left out."""
    plain = {name: value for name, value in asdict(settings).items() if name != "classes" and value != ""}
    lines = [f"{name} = {_value(value)}" for name, value in plain.items()]
    for look in settings.classes:
        lines += ["", "[[classes]]", *(f"{name} = {_value(value)}" for name, value in asdict(look).items() if value)]
    return HEAD + "\n".join(lines) + "\n"


def _value(value: str | int | float | bool) -> str:
    """TOML's strings, numbers and booleans are JSON's, but for two characters."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _settings(found: Mapping[str, Any]) -> Settings:
    if found.get("format", FORMAT) != FORMAT:
        raise ValueError(f"its format is {found['format']!r}, but this version of balent reads format {FORMAT}")
    known = {field.name: field.type for field in fields(Settings)}
    for name, value in found.items():
        if name not in known:
            raise ValueError(f"{name!r} is not a setting; settings are {', '.join(known)}")
        if name != "classes" and type(value) is not known[name] and (known[name], type(value)) != (float, int):
            raise ValueError(f"{name} must be of type {_type(known[name])}, but is {value!r}")
    looks = tuple(Look(**{key: str(value) for key, value in look.items()}) for look in found.get("classes", ()))
    return Settings(**{**found, "goal": float(found.get("goal", 0)), "classes": looks})


def _type(kind: Any) -> str:
    return {str: "text", int: "whole number", float: "number", bool: "true or false"}.get(kind, str(kind))
