"""The predictor of a Learner, trained on all labels, and its posterior samples.

A fit is a function of where it starts, the labels and the seed. One that a crash undid is therefore repeated from where
it started. Labels are trained on in the order of the pool or, where points have ids, in the order of the ids: then the
order of the pool does not matter.
"""

from pathlib import Path
from typing import Any

import torch
from torch import Generator

from balent.data.pool import Indexed
from balent.loop import checkpoint
from balent.loop.events import Events
from balent.loop.labels import Labels
from balent.loop.seeds import seed_of
from balent.types import Predictor, Sampled


class Fits:
    """Trains when labels have changed, and only then."""

    def __init__(self, predictor: Predictor, pool: Indexed, events: Events, seed: int) -> None:
        self.predictor, self.pool, self.events, self.seed = predictor, pool, events, seed
        self.forget()

    def forget(self) -> None:
        """The predictor has changed: the next fit trains again."""
        self._told: dict[int, Any] | None = None  # the labels of the last fit
        self._cold = False  # fits are known to start from the same weights every time
        self._sampled: tuple[tuple[int | str, int, str], Sampled] | None = None

    def fit(self) -> None:
        """Train on all labelled points, unless the last fit did."""
        self._resume()
        if self._told != self.events.labels.told:
            start = self.predictor.state()
            if start and not self._cold and self.events.keeps:
                checkpoint.save(self._path, start, events=len(self.events.happened))
            self._fit(self.events.labels)
            self._cold = checkpoint.same(start, self.predictor.state())
            if self._cold and self.events.keeps:
                self._path.unlink(missing_ok=True)  # a fit that starts anew needs no memory of the last one

    def sampled(self, n: int | str, masks: str) -> Sampled:
        """n posterior samples given all labels; the same ones until labels change."""
        self.fit()
        key = (n, len(self.events.labels.told), masks)
        if self._sampled is None or self._sampled[0] != key:
            drawn = self.predictor.sample(n, seed=seed_of(self.seed, "draws", key[1]), masks=masks)
            self._sampled = (key, drawn)
        return self._sampled[1]

    @property
    def _path(self) -> Path:
        return self.events.file("checkpoint.safetensors")

    def _resume(self) -> None:
        """After a crash of a run that starts each fit from the last one: that fit once more, from where it started."""
        if self._told is not None or self.events.directory is None or not self._path.exists():
            return
        number = checkpoint.about(self._path)["events"]
        if number > self.events.grown:  # else it is of fewer classes
            checkpoint.restore(self._path, self.predictor)
            self._fit(self.events.after(number))

    def _fit(self, labels: Labels) -> None:
        if not labels.told:
            raise ValueError("a fit needs labels, but none was given yet; label some points first: ask, then tell")
        at = self._order(labels)
        x, y = self.pool[torch.tensor(at)], torch.tensor([labels.told[i] for i in at])
        generator = Generator().manual_seed(seed_of(self.seed, "training", len(at)))
        self._told, self._sampled = None, None
        self.predictor.fit((x, y), generator=generator)
        self._told = dict(labels.told)

    def _order(self, labels: Labels) -> list[int]:
        ids = self.events.places.ids
        return sorted(labels.told) if ids is None else sorted(labels.told, key=ids.__getitem__)
