"""`auto`: what we recommend. A name that stands for another strategy, the same one for the life of a run."""

from balent import adapt
from balent.types import Sampled, Strategy

AUTO, RECOMMENDED, BY_SCORES = "auto", "herding:margin", "balentacq"


def resolved(strategy: str | Strategy, sampled: Sampled | None = None, scores: str = "") -> str | Strategy:
    """The strategy that this one stands for: itself, unless it is `auto`.

    scores  what asks for a score of each point, in words: herding has none
    """
    return BY_SCORES if why_not(strategy, sampled, scores) else RECOMMENDED if strategy == AUTO else strategy


def why_not(strategy: str | Strategy, sampled: Sampled | None = None, scores: str = "") -> str:
    """Why `auto` is not what we recommend, in words."""
    if strategy == AUTO and scores:
        return f"{scores} needs a measure"
    if strategy == AUTO and sampled is not None and adapt.only_positions(sampled):
        return "these draws come without features to compare points by"
    return ""
