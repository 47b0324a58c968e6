"""How many images a second and core become features, by torch, by `balent embed` before and after, by onnxruntime?

`python benchmarks/bench_embed.py` compares them from JPEG files. `--only batches` sweeps the batch size of both
backends, `--only views` measures augmentations (and those of kornia, if it is on the path). The process is pinned to
one core, and seconds are its own (user and system): other work on the machine counts for less. Best of several.
"""

import argparse
import io
import os
import resource
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import torch
from PIL import Image

from balent.acquisition import pages
from balent.data import sources
from balent.predictors.augment import Views
from balent.predictors.inputs import channels_last
from balent.vision import onnx
from balent.vision.album import embed_folder
from balent.vision.embedding import embed, together
from balent.vision.photos import Bytes, Photos, named, pixels

SIDES, FILES, WIDTH, HEIGHT, QUALITY = (224, 128), 96, 640, 480, 85  # of the JPEG files
AT_ONCE, TIMES = 16, 5  # images per batch of plain torch, repetitions
BATCHES, IMAGES = (1, 4, 16, 64), 64
VIEWS = ((128, 32, 32), (192, 64, 64), (32, 32, 224))  # images, side, side of the views


def cpu_seconds(work: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def best(ways: dict[str, Callable[[], object]], times: int = TIMES) -> dict[str, float]:
    """Seconds of each, the least of several rounds through all of them."""
    return {name: min(found) for name, found in zip(ways, zip(*_rounds(ways, times), strict=True), strict=True)}


def _rounds(ways: dict[str, Callable[[], object]], times: int) -> list[list[float]]:
    return [[cpu_seconds(way) for way in ways.values()] for _ in range(times)]


def jpeg(seed: int) -> bytes:
    """Blurred noise of several scales, which takes as many bytes as a photograph does."""
    rng = np.random.default_rng(seed)
    total = np.zeros((HEIGHT, WIDTH, 3))
    for scale, weight in ((80, 0.5), (20, 0.25), (5, 0.15), (2, 0.1)):
        small = Image.fromarray(rng.integers(0, 256, (HEIGHT // scale, WIDTH // scale, 3), dtype=np.uint8))
        total += weight * np.asarray(small.resize((WIDTH, HEIGHT), Image.Resampling.BICUBIC))
    file = io.BytesIO()
    Image.fromarray(total.astype(np.uint8)).save(file, "JPEG", quality=QUALITY)
    return file.getvalue()


def speeds(backbone: str, side: int, place: Path) -> None:
    """All ways from the same files; those without decoding get the decoded images."""
    network = named(backbone, side)
    decoded = np.stack([pixels(path, side) for path in sorted(place.glob("*.jpg"))])
    x = torch.from_numpy(decoded).float() / 255
    photos, slow = Photos(backbone, side), Photos(backbone, side, "torch")
    exporting = cpu_seconds(lambda: photos._run)

    @torch.inference_mode()
    def eager() -> None:
        for i in range(0, FILES, AT_ONCE):
            network(x[i : i + AT_ONCE])

    def before() -> None:
        with TemporaryDirectory() as out:
            os.environ["BALENT_CACHE"] = out
            data = sources.load(str(place), say=lambda note: None)
            size = together(side)
            list(embed(data, named(backbone, side), Path(out, "f.npz"), about={}, batch_size=size, backend="torch"))

    def after(maker: Photos) -> None:
        with TemporaryDirectory() as out:
            list(embed_folder(place, maker, Path(out, "f.npz"), about={}))

    ways: dict[str, Callable[[], object]] = {
        f"torch eager, {AT_ONCE} at a time, no decoding": eager,
        "balent embed of 0.1 (torch), from files": before,
        "balent embed without onnxruntime, from files": lambda: after(slow),
        f"balent embed ({photos.backend}), from files": lambda: after(photos),
        f"{photos.backend} alone, no decoding": lambda: [photos._run(image[None]) for image in decoded],
        "decoding alone": lambda: [pixels(path, side) for path in place.glob("*.jpg")],
    }
    seconds = best(ways)
    slowest = seconds["balent embed of 0.1 (torch), from files"]
    print(f"{backbone}, {side} × {side}; {FILES} JPEG files of {WIDTH} × {HEIGHT}; export once: {exporting:.1f} s")
    for name, taken in seconds.items():
        print(f"  {FILES / taken:6.1f} images a second and core, {slowest / taken:5.2f}x: {name}")


def batches(backbone: str, side: int) -> None:
    network = named(backbone, side)
    images = torch.randint(256, (IMAGES, 3, side, side), generator=torch.Generator().manual_seed(0)).to(torch.uint8)
    ways: dict[str, Callable[[], object]] = {}
    eager = onnx.Eager(Bytes(network))
    for size in BATCHES:
        parts = [part.numpy() for part in images.split(size)]
        run = onnx.Exported(Bytes(network), images[:size])
        ways[f"{onnx.backend()}, {size} at a time"] = lambda run=run, parts=parts: [run(part) for part in parts]
        laid_out = [channels_last(part).numpy() for part in images.split(size)]
        ways[f"torch, channels last, {size} at a time"] = lambda parts=laid_out: [eager(part) for part in parts]
    for name, taken in sorted(best(ways, 3).items()):
        print(f"{backbone}, {side} × {side}: {IMAGES / taken:6.1f} images a second and core, {name}")


def augmentations(n: int, side: int, size: int) -> None:
    images, generator = torch.rand(n, 3, side, side), torch.Generator().manual_seed(0)
    ways: dict[str, Callable[[], object]] = {"balent": lambda: Views(size=size)(images, generator)}
    if (theirs := kornia(size)) is not None:
        ways["kornia"] = lambda: theirs(images)
    for name, seconds in best(ways, 10).items():
        print(f"{n} views of {side} × {side} as {size} × {size}: {1000 * seconds:5.1f} ms, {name}")


def kornia(size: int) -> torch.nn.Module | None:
    try:
        import kornia.augmentation as k
    except ImportError:
        return None
    jitter = k.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8)
    crop = k.RandomResizedCrop((size, size))
    return torch.nn.Sequential(crop, k.RandomHorizontalFlip(), jitter, k.RandomGrayscale(p=0.2))


def from_files(backbone: str) -> None:
    with TemporaryDirectory() as folder:
        for i in range(FILES):
            Path(folder, f"{i:03d}.jpg").write_bytes(jpeg(i))
        for side in SIDES:
            speeds(backbone, side, Path(folder))


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["files", "batches", "views"], default="files")
    parser.add_argument("--backbone", default="efficientnet-lite0")
    given = parser.parse_args()
    os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    torch.set_num_threads(1)
    pages.keep()  # as the command does
    if given.only == "files":
        from_files(given.backbone)
    for side in SIDES if given.only == "batches" else ():
        batches(given.backbone, side)
    for sizes in VIEWS if given.only == "views" else ():
        augmentations(*sizes)
