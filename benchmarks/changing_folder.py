"""Do labels stay with their pictures?  A folder of photos in which files are renamed, added, removed and changed.

    python benchmarks/changing_folder.py

1,000 pictures, 300 of them labelled. Then 100 are renamed (among them 20 that swap their names), 200 are added, 50 are
removed and 5 are changed, and all are written in another order. Checked is what a person would check: the content.
"""

import hashlib
import random
import shutil
import tempfile
from pathlib import Path

import numpy as np
from PIL import Image

from balent import Project

PICTURES, LABELLED = 1000, 300
RENAMED, SWAPPED, ADDED, REMOVED, CHANGED = 100, 20, 200, 50, 5
CLASSES = ("red", "green", "blue")


def picture(path: Path, number: int) -> None:
    rng = np.random.default_rng(number)
    pixels = np.zeros((24, 24, 3), np.uint8)
    pixels[..., number % 3] = rng.integers(100, 255, (24, 24))
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


def content(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def changed(folder: Path, rng: random.Random) -> tuple[set[str], set[str]]:
    """Does all of it; returns the ids that are new and those that are changed."""
    files = sorted(path for path in folder.rglob("*.png"))
    rng.shuffle(files)
    for one, other in zip(files[:SWAPPED:2], files[1:SWAPPED:2], strict=True):
        one.rename(folder / "aside")
        other.rename(one)
        (folder / "aside").rename(other)
    for path in files[SWAPPED:RENAMED]:
        path.rename(path.with_name(f"renamed {path.name}"))
    for path in files[RENAMED : RENAMED + REMOVED]:
        path.unlink()
    touched = files[RENAMED + REMOVED :][:CHANGED]
    for i, path in enumerate(touched):
        picture(path, 10**6 + i)
    for number in range(PICTURES, PICTURES + ADDED):
        picture(folder / "new" / f"{number}.png", number)
    again = folder.with_name("again")
    for path in rng.sample(sorted(folder.rglob("*.png")), len(list(folder.rglob("*.png")))):
        (again / path.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(path, again / path.relative_to(folder))  # in another order, with other times
    shutil.rmtree(folder)
    again.rename(folder)
    new = {f"new/{number}.png" for number in range(PICTURES, PICTURES + ADDED)}
    return new, {path.relative_to(folder).as_posix() for path in touched}


def main(place: Path) -> None:
    folder, rng = place / "photos", random.Random(0)
    for number in range(PICTURES):
        picture(folder / f"{number % 7}" / f"{number}.png", number)
    project = Project.create(place / "photos.balent", folder, classes=CLASSES, features="random:resnet10")
    some = rng.sample(sorted(path for path in folder.rglob("*.png")), LABELLED)
    labels = {path.relative_to(folder).as_posix(): CLASSES[int(path.stem) % 3] for path in some}
    project.tell(labels, who="ann")
    by_content = {content(folder / id): name for id, name in labels.items()}
    new, touched = changed(folder, rng)

    project = Project(place / "photos.balent")
    found = project.refresh()
    kept = [(project.items[n], project.state.classes.name(label)) for n, label in project.state.labels().items()]
    right = [
        by_content.get(content(folder / item.id)) == name
        for item, name in kept
        if not item.gone and item.id not in touched
    ]
    print(f"renamed  {len(found.renamed)} of {RENAMED} found again by their content")
    print(f"labels   {sum(right)} of {len(right)} present and unchanged pictures have the label of their content")
    print(f"removed  {len(found.removed)} of {REMOVED}; {sum(item.gone for item, _ in kept)} of them keep their labels")
    print(f"changed  {len(found.changed)} of {CHANGED} reported; labelled ones are marked: {marked(project)}")
    print(f"new      {len(found.new)} of {ADDED}; asked among the next 400: {asked(project, new)}")
    assert all(right)
    assert (len(found.renamed), len(found.removed)) == (RENAMED, REMOVED)
    assert set(found.new) == new
    assert set(found.changed) == touched


def marked(project: Project) -> int:
    return len(project.status()["changed"])


def asked(project: Project, new: set[str]) -> int:
    return len(new & {item.id for item in project.ask(400)})


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as place:
        main(Path(place))
