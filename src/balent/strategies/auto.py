"""`auto`: what we recommend. A name that stands for another strategy, the same one for the life of a run.

In our runs it is ahead of random over the curve wherever features separate the classes. Where they do not, it does not
help: on SVHN digits with features learnt on photos it is level with random (docs/evidence/first_labels.md).
"""

from balent import adapt
from balent.types import Sampled, Strategy

AUTO, RECOMMENDED, BY_SCORES = "auto", "herding:margin", "balentacq"


def resolved(
    strategy: str | Strategy, sampled: Sampled | None = None, scores: str = "", compared: bool = True
) -> str | Strategy:
    """The strategy that this one stands for: itself, unless it is `auto`.

    scores    what asks for a score of each point, in words: herding has none
    compared  points can be compared as vectors: herding needs it
    """
    return BY_SCORES if why_not(strategy, sampled, scores, compared) else RECOMMENDED if strategy == AUTO else strategy


def why_not(strategy: str | Strategy, sampled: Sampled | None = None, scores: str = "", compared: bool = True) -> str:
    """Why `auto` is not what we recommend, in words."""
    if strategy == AUTO and scores:
        return f"{scores} needs a measure"
    if strategy == AUTO and not compared:
        return "these points are not vectors, and the model has no features of them to compare them by"
    if strategy == AUTO and sampled is not None and adapt.only_positions(sampled):
        return "these draws come without features to compare points by"
    return ""
