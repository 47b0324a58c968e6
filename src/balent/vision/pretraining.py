"""A backbone of the catalogue, trained by SimCLR into a file that the catalogue takes."""

import shutil
from collections.abc import Iterator
from dataclasses import asdict
from pathlib import Path

from torch import Generator

from balent.data.sources import Data
from balent.loop.seeds import seed_of
from balent.predictors.training import reproducible
from balent.vision import catalogue
from balent.vision.blocks import same
from balent.vision.fingerprints import fingerprint
from balent.vision.simclr import SimCLR, Step, train


def pretrain(data: Data, name: str, settings: SimCLR, path: Path, device: str = "cpu") -> Iterator[Step]:
    """Trains a backbone from random weights by SimCLR on the images of the pool; yields its steps.

    data      images; labels are not used
    name      of a backbone (see `balent list`)
    settings  of the training
    path      the .safetensors to write; a file with the same settings is kept, one with other settings is an error
    device    where it is trained

    Until the file is complete, FILE.parts holds a checkpoint, from which the same call continues.
    """
    if path.suffix != ".safetensors":
        raise ValueError(f"the output must be a .safetensors file, but is {path}")
    with reproducible(Generator().manual_seed(seed_of(settings.seed, "initial weights"))):
        backbone = catalogue.made(name, None, settings.image_size)
    about = {"simclr": asdict(settings), "images": fingerprint(data)}
    parts = path.with_name(path.name + ".parts")
    if path.exists():
        same(path, catalogue.about(path), {"backbone": name, **about})
    else:
        words = {"backbone": name, "images": about["images"]}
        yield from train(backbone, backbone.width, data.x_train, settings, directory=parts, about=words, device=device)
        catalogue.save(path, backbone, **about)
    shutil.rmtree(parts, ignore_errors=True)
