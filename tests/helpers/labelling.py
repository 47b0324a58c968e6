"""Small projects for tests: rows of numbers, and pictures in a folder."""

import numpy as np

from balent import Project

CLASSES = ["cat", "dog", "bird"]


def clusters(folder, items=60):
    """rows.npy and ids.txt in a folder: clusters that any model separates. Returns the class of each id."""
    rng = np.random.default_rng(0)
    truth = np.arange(items) % 3
    np.save(folder / "rows.npy", (np.eye(3, 8)[truth] * 4 + rng.normal(size=(items, 8)) * 0.5).astype(np.float32))
    ids = [f"item {i}" for i in range(items)]
    (folder / "ids.txt").write_text("\n".join(ids), encoding="utf-8")
    return {id: CLASSES[t] for id, t in zip(ids, truth, strict=True)}


def of_rows(folder, items=60, **settings):
    """A project of clusters."""
    clusters(folder, items)
    return Project.create(
        folder / "rows.balent", folder / "rows.npy", ids=folder / "ids.txt", classes=CLASSES, **settings
    )


def pictures(folder, names, size=8):
    """PNG files, each of another colour: the item of a class has its own range of hues."""
    from PIL import Image

    for number, name in enumerate(names):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.new("RGB", (size, size), (number % 256, number // 256, 128)).save(path, format="PNG")


def of_pictures(folder, names, **settings):
    """A project of pictures."""
    pictures(folder / "photos", names)
    settings = {"classes": CLASSES, **settings}
    return Project.create(folder / "photos.balent", folder / "photos", **settings)
