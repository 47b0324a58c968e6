"""Which k points to label next: strategies, and the table of their names."""

from balent import checks
from balent.measures import MEASURES, bald
from balent.strategies.jitter import Jitter
from balent.strategies.power import Power
from balent.strategies.race import Race
from balent.strategies.top_k import Best, TopK
from balent.strategies.uniform import Uniform
from balent.types import Strategy

__all__ = ["STRATEGIES", "Best", "Jitter", "Power", "Race", "TopK", "Uniform", "strategy"]

STRATEGIES: dict[str, Strategy] = {
    **{name: TopK(measure) for name, measure in MEASURES.items()},
    "random": Uniform(),
    "power_bald": Power(bald),
}
PREFIXES = {"power": Power, "jitter": Jitter}


def strategy(name: str) -> Strategy:
    """The strategy of that name: one of STRATEGIES, `power:<measure>` or `jitter:<measure>`."""
    prefix, colon, measure = name.partition(":")
    if colon:
        return checks.lookup(PREFIXES, prefix, "kind of strategy")(checks.lookup(MEASURES, measure, "measure"))
    return checks.lookup(STRATEGIES, name, "strategy")
