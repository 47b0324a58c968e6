"""The score of each point or, where items have many parts, of each item.

A part is scored as a point is. Where the measure jumps at a zero (BalEntAcq), parts are ranked by the measure and
averaged in the balance that crosses zero there (BalEnt): one pixel with BalEnt barely above zero would else outweigh a
million others, because 1/BalEnt has no bound.
"""

from torch import Tensor

from balent.maths.facts import facts
from balent.maths.measures import zero_first
from balent.maths.moments import Moments
from balent.types import Measure


def scored(measure: Measure, m: Moments) -> Tensor:
    """One score for each point, as the measure gives it; for each item, the aggregate of the scores of its parts."""
    if m.items is None:
        return measure(m)
    balance = facts(measure).balance
    if balance is None:
        return m.items.scores(measure(m))
    values = balance(m)
    return zero_first(m.items.scores(values, zero_first(values)))
