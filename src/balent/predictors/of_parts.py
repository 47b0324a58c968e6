"""Predictors of items with many parts, and of items with several labels: wrappers of any predictor of a torch module.

Several labels are parts with two classes. So both have the same measures, strategies and loop as points with one label.
"""

from collections.abc import Sequence
from typing import Any

from torch import Generator, Tensor

from balent.maths.parts import Aggregate
from balent.predictors.part_moments import Mask, PartMoments
from balent.predictors.tasks import IGNORED, OfParts, PerPart, Several
from balent.types import Batch, HasMasks, Learns


class Wrapper:
    """What both have in common: the predictor inside does the work, for labels of another kind."""

    def __init__(self, predictor: Learns, task: OfParts, aggregate: str | Aggregate, mask: Mask) -> None:
        check(predictor, mask)
        self.predictor, self.task, self.mask = predictor, task, mask
        self.aggregate = Aggregate.named(aggregate)

    @property
    def per_point(self) -> bool:
        """Whether masks can be drawn per item."""
        return isinstance(self.predictor, HasMasks) and self.predictor.per_point

    def fit(self, labelled: Any, *, generator: Generator) -> None:
        """Train on items and the labels of their parts."""
        self.predictor.learn(labelled, self.task, generator=generator)

    def sample(self, n: int | str, *, seed: int = 0, masks: str = "shared") -> PartMoments:
        """n fixed functions, with moments for each part and scores for each item."""
        if n == "analytic":
            raise ValueError('items with parts have no analytic moments; pass a number of draws instead of "analytic"')
        return PartMoments(self.predictor.sample(n, seed=seed, masks=masks), self.task, self.aggregate, self.mask)

    def width(self, batch: Batch) -> int:
        """How many classes a part may have; how many labels an item may have."""
        return self.task.width(self.predictor.shape(batch))

    def read(self, values: Any, names: Sequence[str], batch: Batch) -> list[Any]:
        """Labels as a user gives them, checked against the outputs for these points; as lists of numbers."""
        shape = self.predictor.shape(batch)
        y = self.task.read(values, names, self.task.width(shape))
        self.task.check(y, shape, one_class=True)
        return y.tolist()

    def state(self) -> dict[str, Tensor]:
        """The weights that the next fit starts from."""
        return self.predictor.state()

    def load_state(self, state: dict[str, Tensor]) -> None:
        """Restore weights that `state` returned."""
        self.predictor.load_state(state)


class Parts(Wrapper):
    """A predictor of a module that gives [batch, parts…, classes]: tokens of a text, pixels of an image, boxes.

    predictor   MCDropout, Ensemble or VariationalDropout of the module
    aggregate   from scores of parts to the score of their item: "mean", "max", "sum" or "top:0.1", the mean of the top
                tenth
    class_axis  of the module's output: -1 the last one, 1 as in [batch, classes, height, width]
    ignore      the label of parts that nobody labels
    mask        which parts are scored: a name in batches that are dicts ("attention_mask"), or a function from a batch
                to True and False, [items, parts…]; False: all, though some are padding
    """

    def __init__(
        self,
        predictor: Learns,
        *,
        aggregate: str | Aggregate = "mean",
        class_axis: int = -1,
        ignore: int = IGNORED,
        mask: Mask = None,
    ) -> None:
        super().__init__(predictor, PerPart(class_axis, ignore), aggregate, mask)


class SeveralLabels(Wrapper):
    """A predictor of a module that gives [batch, labels], a logit for each label, of which several may hold.

    predictor  MCDropout, Ensemble or VariationalDropout of the module
    aggregate  from scores of labels to the score of their item: "sum", "max", "mean" or "top:0.1"
    ignore     in place of 0 or 1 where nobody knows whether the label holds
    """

    def __init__(self, predictor: Learns, *, aggregate: str | Aggregate = "sum", ignore: int = IGNORED) -> None:
        super().__init__(predictor, Several(ignore), aggregate, False)


def check(predictor: object, mask: object) -> None:
    """Refuses a predictor that has no part outputs, and a mask that belongs to one batch only."""
    if not isinstance(predictor, Learns):
        raise TypeError(
            f"parts need a predictor of a torch module, such as MCDropout(model), but {type(predictor).__name__} has "
            "no method learn(labelled, task, generator=…)"
        )
    if not (mask is None or mask is False or isinstance(mask, str) or callable(mask)):
        kind = "an array" if isinstance(mask, Tensor | Sequence) else type(mask).__name__
        raise TypeError(
            f"mask must be a name in the batch or a function of the batch, but is {kind}; a mask belongs to a batch: "
            "put it beside the inputs in a pool that is a dict, and pass its name"
        )
