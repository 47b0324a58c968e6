"""How many images a second does a backbone turn into features, by batch size?  And what do augmentations cost?

Seconds are those of the process (user and system): other work on the machine counts for less. Run it with
OMP_NUM_THREADS=1; with kornia on the path, its augmentations are measured too.
"""

import resource
from collections.abc import Callable

import torch

from balent.predictors.augment import Views
from balent.predictors.inputs import channels_last
from balent.vision.catalogue import backbone
from balent.vision.embedding import together

BACKBONE, SIDES, BATCHES, IMAGES = "efficientnet-lite0", (96, 224), (4, 16, 64), 128
VIEWS = ((128, 32, 32), (192, 64, 64), (32, 32, 224))  # images, side, side of the views


def cpu_seconds(work: Callable[[], object]) -> float:
    before = resource.getrusage(resource.RUSAGE_SELF)
    work()
    after = resource.getrusage(resource.RUSAGE_SELF)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


@torch.inference_mode()
def features(side: int) -> None:
    network = backbone(BACKBONE, side).eval().to(memory_format=torch.channels_last)
    images = channels_last(torch.rand(IMAGES, 3, 32, 32))
    network(images[:4])
    for batch in BATCHES:
        seconds = cpu_seconds(lambda size=batch: [network(images[i : i + size]) for i in range(0, IMAGES, size)])
        ours = " (the default)" if batch == together(side) else ""
        print(f"{BACKBONE}, {side} × {side}: {IMAGES / seconds:5.0f} images a second, {batch} at a time{ours}")


def augmentations(n: int, side: int, size: int) -> None:
    images, generator = torch.rand(n, 3, side, side), torch.Generator().manual_seed(0)
    ways: dict[str, Callable[[], object]] = {"balent": lambda: Views(size=size)(images, generator)}
    if (theirs := kornia(size)) is not None:
        ways["kornia"] = lambda: theirs(images)
    for name, way in ways.items():
        way()
        seconds = cpu_seconds(lambda way=way: [way() for _ in range(10)]) / 10
        print(f"{n} views of {side} × {side} as {size} × {size}: {1000 * seconds:5.1f} ms, {name}")


def kornia(size: int) -> torch.nn.Module | None:
    try:
        import kornia.augmentation as k
    except ImportError:
        return None
    jitter = k.ColorJitter(0.4, 0.4, 0.4, 0.1, p=0.8)
    crop = k.RandomResizedCrop((size, size))
    return torch.nn.Sequential(crop, k.RandomHorizontalFlip(), jitter, k.RandomGrayscale(p=0.2))


if __name__ == "__main__":
    for side in SIDES:
        features(side)
    for sizes in VIEWS:
        augmentations(*sizes)
