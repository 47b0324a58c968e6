"""Which project a path on the command line stands for: its own folder, or its data.

A project lies beside its data: photos has photos.balent, tickets.csv has tickets.balent. Options of creation are
settings of a new project. For one that exists they may be repeated, but not changed.
"""

import os
from dataclasses import dataclass, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from balent.apps.cli.terminal import err, say
from balent.data.formats.endings import ENDINGS

if TYPE_CHECKING:
    from balent.project.project import Project
    from balent.project.settings import Settings

ENDING = ".balent"
ROWS, WORDS = 100, 4  # that are looked at; that make a text


@dataclass(frozen=True)
class Wanted:
    """Options of creation; None where an option was not given."""

    classes: str | None = None
    text: str | None = None
    id: str | None = None
    target: str | None = None
    features: str | None = None
    ids: Path | None = None
    model: str | None = None
    strategy: str | None = None
    seed: int | None = None
    audit: int | None = None
    overlap: int | None = None
    duplicates: str | None = None
    follow_links: bool | None = None
    goal: float | None = None

    def given(self) -> dict[str, Any]:
        found = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value for name, value in found.items() if value is not None}

    def names(self) -> list[str]:
        """Of the classes."""
        return [name.strip() for name in (self.classes or "").split(",") if name.strip()]


def opened(path: Path, project: Path | None = None, data: Path | None = None) -> "Project":
    """The project of a path, which must exist."""
    folder = home(path, project)
    if not is_project(folder):
        raise FileNotFoundError(_missing(path, folder))
    return _open(path, folder, data)


def opened_or_made(path: Path, wanted: Wanted, project: Path | None, data: Path | None) -> "Project":
    """The project of a path. If the data have none yet, it is made."""
    folder = home(path, project)
    if not is_project(folder):
        _refuse_unknown(path, folder, wanted)
        return made(path, folder, wanted)
    found = _open(path, folder, data)
    if not found.state.classes:  # none were given when it was made
        for name in wanted.names():
            found.add_class(name)
    _refuse_changes(found, wanted)
    return found


def home(path: Path, project: Path | None) -> Path:
    """The folder of a project, whether it exists or not."""
    if project is not None or is_project(path):
        return project or path
    place = Path(os.path.normpath(path.absolute()))
    name = place.name if place.is_dir() or place.suffix == ENDING else place.stem
    beside = path.parent if path.name and path.name != ".." else place.parent
    return path if place.suffix == ENDING else beside / f"{name}{ENDING}"


def is_project(folder: Path) -> bool:
    from balent.project.settings import NAME

    return (folder / NAME).exists()


def _missing(path: Path, folder: Path) -> str:
    if not path.exists() or path.suffix == ENDING:
        return f"{path} is neither data nor a project: it does not exist or has no project.toml"
    return f"{path} has no project yet ({folder} is not there); make one: balent ask {path} --classes NAME,NAME"


def _open(path: Path, folder: Path, data: Path | None) -> "Project":
    from balent.project.project import Project

    found = Project(folder, data=data, say=say)
    place = found.settings.place(folder)
    if data is None and not os.path.samefile(path, folder) and os.path.realpath(path) != os.path.realpath(place):
        raise ValueError(
            f"{folder} is the project of {place}, not of {path}; if the data have moved, give --data {path}; for a "
            "project of its own give --project DIR"
        )
    return found


def made(path: Path, folder: Path, wanted: Wanted) -> "Project":
    """A new project of data."""
    from balent.apps.cli import screen
    from balent.project.project import Project

    _refuse_impossible(path, wanted)
    settings = {name: value for name, value in wanted.given().items() if name != "classes"}
    try:
        with screen.pace("items", err) as show:
            found = Project.create(
                folder, path, classes=wanted.names(), say=say, progress=lambda done, of: show(done, of, ""), **settings
            )
    except OSError as error:
        if error.filename is None or Path(error.filename) not in (folder, *folder.parents):
            raise
        raise PermissionError(
            f"{folder} cannot be made: {error.strerror}; put the project elsewhere: --project DIR"
        ) from error
    say(f"made {folder}: {len(found.items.present())} items of {path}")
    if (name := _column_of_texts(found)) is not None:
        say(f"items are whole rows; if the column {name!r} has texts to label, remove {folder} and give --text {name}")
    return found


def _column_of_texts(project: "Project") -> str | None:
    """A column that looks as if --text had been forgotten: most of its first values have several words."""
    if project.settings.kind != "table":
        return None
    rows = [project.kind.content(item.id) for item in project.items.all[:ROWS]]
    counts = {name: sum(len(str(row[name]).split()) >= WORDS for row in rows) for name in rows[0]}
    most = max(counts, key=lambda name: counts[name], default=None)
    return most if most is not None and counts[most] > len(rows) / 2 else None


def _refuse_impossible(path: Path, wanted: Wanted) -> None:
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; name a folder of images, a table, or an .npy of features")
    if path.is_file() and path.name.lower().endswith(ENDINGS):
        raise ValueError(f"{path} is one image; name the folder that it is in: {path.absolute().parent}")
    if wanted.features is not None and wanted.features.endswith(".npy") and path.suffix == ".npy":
        raise ValueError(f"{path} has features already; without --features it is taken as it is")


def _refuse_unknown(path: Path, folder: Path, wanted: Wanted) -> None:
    """Names that lead nowhere: once there is a project, another one could be named only by editing its settings."""
    if wanted.strategy is not None:
        from balent.strategies import strategy

        strategy(wanted.strategy)
    if wanted.model is not None:
        from balent import by_name

        by_name.found(wanted.model)
    kind = "images" if path.is_dir() else "text" if wanted.text else None
    if wanted.features is not None and kind is not None and not wanted.features.endswith(".npy"):
        from balent.project.features import maker
        from balent.project.settings import Settings

        maker(Settings(kind, str(path), text=wanted.text or "", features=wanted.features), folder / "features")


# ── options that were given again ────────────────────────────────────────────────────────────────────


def _refuse_changes(project: "Project", wanted: Wanted) -> None:
    """Options of creation may repeat what the project has."""
    new = [name for name in wanted.names() if name not in project.state.classes]
    if new:
        raise ValueError(
            f"{project.path} has no class {new[0]!r}; its classes are {', '.join(project.state.classes.names())}; add "
            f"it: balent classes {project.path} --add {new[0]}"
        )
    for name, value in wanted.given().items():
        has = name == "classes" or _setting(project.settings, project.path, name)
        if name != "classes" and has != _as_setting(name, value):
            option = name.replace("_", "-")
            raise ValueError(
                f"{project.path} has {name} = {has!r}, but --{option} is {str(value)!r}; to change it, edit {name} in "
                f"{project.path / 'project.toml'}"
            )


def _setting(settings: "Settings", folder: Path, name: str) -> Any:
    """What a project has, in the form of `_as_setting`."""
    if (name == "ids" and settings.ids) or (name == "features" and settings.features.endswith(".npy")):
        return os.path.normpath(settings.place(folder).parent / getattr(settings, name))
    return settings.factory(folder) if name == "model" else getattr(settings, name)


def _as_setting(name: str, value: Any) -> Any:
    """Paths count from the current folder."""
    from balent.project.settings import absolute

    if name == "ids" or (name == "features" and value.endswith(".npy")):
        return os.path.abspath(value)
    file, colon, function = str(value).rpartition(":")
    if name == "model" and file.endswith(".py"):
        return f"{os.path.abspath(file)}{colon}{function}"
    return absolute(value) if name in ("features", "strategy") else value
