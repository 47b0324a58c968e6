"""Hashes by which data and weights are recognised, so that features of different ones are never mixed."""

import hashlib

import numpy as np
from torch import nn

from balent.data.sources import Data

PARTS = {"x_train": "y_train", "x_test": "y_test"}
IDS = {"x_train": "ids_train", "x_test": "ids_test"}
PROBES = 64  # images that are compared to recognise the data


def fingerprint(data: Data) -> str:
    """Changes when the data do: labels, ids and numbers of images, and a few of the images."""
    digest = hashlib.blake2b(digest_size=16)
    for part, labels in PARTS.items():
        images, y = getattr(data, part), getattr(data, labels)
        digest.update(f"{part} {len(images)}".encode())
        digest.update(y.numpy().tobytes())
        if getattr(data, IDS[part]) is not None:
            digest.update("\0".join(getattr(data, IDS[part])).encode("utf-8", "surrogatepass"))
        for i in np.linspace(0, len(images) - 1, PROBES).astype(int).tolist() if len(images) else []:
            digest.update(images[i : i + 1].numpy().tobytes())
    return digest.hexdigest()


def fingerprint_of(model: nn.Module) -> str:
    """Changes when a weight does."""
    digest = hashlib.blake2b(digest_size=16)
    for name, value in [*model.named_parameters(), *model.named_buffers()]:
        digest.update(name.encode())
        digest.update(value.detach().cpu().contiguous().numpy().tobytes())
    return digest.hexdigest()
