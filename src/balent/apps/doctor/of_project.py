"""What a labelling project knows: items, features, labels, random checks, its model. Nothing is written."""

from collections import Counter
from functools import cached_property

import numpy as np
import torch

from balent.apps.doctor.finding import Missing
from balent.apps.doctor.patient import Patient
from balent.apps.doctor.tallies import Audit, Equal, HeldOut, LabelSet
from balent.data.pool import as_source
from balent.loop.seeds import seed_of
from balent.predictors.mc_dropout import MCDropout
from balent.project import audit, standing
from balent.project.asking import View
from balent.project.model import FEW, Model
from balent.project.project import Project
from balent.types import Features, Sampled, Source

NO_MODEL = "a model needs labelled items of two classes first"


class OfProject:
    """Evidence from a project as it was last written: data that have changed since are not looked for."""

    points = "items"

    def __init__(self, project: Project) -> None:
        self.project, self.view = project, View(project)

    @property
    def size(self) -> int:
        return len(self.project.items.present())

    @property
    def strategy(self) -> str:
        return self.project.settings.strategy

    @property
    def doubtful(self) -> str:
        return f"balent status {self.project.path} --json lists them as suspicious"

    def source(self) -> Source:
        return as_source(torch.from_numpy(self._model.pool.rows))

    def sampled(self) -> Sampled:
        """As `ask` has them. Before there are labels a network of the user's own is tried with its first weights."""
        learner = self._model.learner
        if self._model.trained:
            return learner.sampled()
        if isinstance(learner.predictor, MCDropout):
            return learner.predictor.sample(FEW, seed=seed_of(self.project.settings.seed, "draws"))
        raise Missing(NO_MODEL)

    def labels(self) -> LabelSet:
        """Of all items; equal ones count once, unless the project keeps them apart."""
        names, checks = self.view.classes, set(self._checks)
        order = {number: at for at, number in enumerate(self.project.state.classes.names().values())}
        model = self.view.model
        of = [*self.view.labels] if model is None else [self.view.numbers[row] for row in model.pool.labels]
        y = np.array([order[self.view.labels[n]] for n in of], dtype=np.int64)
        return LabelSet(y, tuple(names), np.array([n in checks for n in of], dtype=bool))

    def labelled(self, patient: Patient) -> Features:
        pool = self._model.pool
        return torch.from_numpy(pool.rows[[*pool.labels]])

    def held_out(self, sampled: Sampled) -> HeldOut:
        """By cross-fitting: each label is judged by a model that has not seen it."""
        model, checks = self._model, set(self._checks)
        if not model.trained:
            raise Missing(NO_MODEL)
        pairs = [*model.cross_fitted(standing.in_order(model.pool))]
        if not pairs:
            raise Missing("too few labels to say: without a fifth of them one class is left")
        rows = [row for row, _ in pairs]
        y = np.array([model.pool.labels[row] for row in rows])
        random = np.array([self.view.numbers[row] in checks for row in rows], dtype=bool)
        return HeldOut(np.stack([p for _, p in pairs]).astype(np.float64), y, random)

    def equal(self, patient: Patient) -> Equal:
        """By fingerprints, which all items have."""
        items = self.project.items
        counts = Counter(items[n].fingerprint for n in items.present())
        redundant = sum(counts.values()) - len(counts)
        pairs = sum(c * (c - 1) // 2 for c in counts.values())
        return Equal(self.size, redundant, pairs, self.project.settings.duplicates == "once")

    def audit(self, answers: bool) -> Audit:
        """`right` is counted by cross-fitting, as `balent status` counts it."""
        answered = standing.answered(self.project)
        judged = answers and self._model.trained and len(self._checks) >= audit.FEWEST
        right = sum(standing.judged(self.view, self._checks)) if judged else None
        shown = answered if right is None else len(self._checks)
        return Audit(shown, right, len(self.view.reserve), self.project.settings.audit)

    @cached_property
    def _model(self) -> Model:
        """Over the features of all items."""
        if self.view.model is None:
            items = self.project.items
            missing = self.project.features.missing([items[n].fingerprint for n in self.view.single])
            raise Missing(
                f"features are not computed yet for {len(missing):,} of {self.size:,} items; balent ask computes them"
            )
        if not len(self.view.model.pool.rows):
            raise Missing("no item has features")
        return self.view.model

    @cached_property
    def _checks(self) -> list[int]:
        """Random checks that people have answered."""
        return self.view.checks() if self.view.model is not None else []
