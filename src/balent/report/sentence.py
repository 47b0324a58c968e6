"""What the records show, in a sentence that a reader may quote.

A difference is claimed only when the 95 % interval leaves out "as many labels as random"; all else is "no
difference shown", which is not "no difference". One seed has no interval, and a strategy that never gets
where random gets is said to.
"""

import math

from balent.report.compare import Comparison, Gain
from balent.report.load import BASELINE, Group

SPELLED = {
    "balentacq": "BalEntAcq",
    "balent": "BalEnt",
    "bald": "BALD",
    "entropy": "Entropy",
    "mean_sd": "MeanSD",
    "power_bald": "PowerBALD",
    "batch_bald": "BatchBALD",
    "badge": "BADGE",
    "core_set": "CoreSet",
    "core_mse": "CoreMSE",
}


def sentence(c: Comparison) -> str:
    """One strategy against random."""
    return _SAID[c.verdict](c, SPELLED.get(c.strategy, c.strategy)) + _unreached(c) + "".join(map(_gained, c.gains))


def no_comparison(group: Group) -> str | None:
    """Why a group has no sentence, if it has none."""
    if BASELINE not in group.strategies:
        return f"{BASELINE} was not run, so nobody can say how many labels the others save; add it to the strategies"
    if len(group.strategies) == 1:
        return f"Only {BASELINE} was run: there is nothing to compare it with"
    return None


def percent(share: float) -> str:
    """38 from 0.38; a decimal where the first digit would be lost."""
    value = 100 * abs(share)
    return f"{value:.1f}" if 0 < value < 0.95 else f"{value:.0f}"


def level(accuracy: float | None) -> str:
    return "?" if accuracy is None else f"{round(100 * accuracy, 1):g} %"


def seeds(n: int) -> str:
    return "1 seed" if n == 1 else f"{n} seeds"


def signed(share: float) -> str:
    """Which way and how far: "18 % fewer"."""
    return f"{percent(share)} % {'fewer' if share > 0 else 'more'}"


def bounds(c: Comparison) -> str:
    """The interval in words: one sign needs saying once."""
    low, high = c.low or 0.0, c.high or 0.0
    if low > 0 or high < 0:
        return "–".join(percent(b) for b in sorted((low, high), key=abs)) + " %"
    return f"{signed(low)} to {signed(high)}" if low or high else "0 %"


def _decided(c: Comparison, name: str) -> str:
    return (
        f"{name} needs {signed(c.saved or 0.0)} labels than {BASELINE} to reach {level(c.level)} "
        f"(95 % CI {bounds(c)}, {seeds(c.seeds)})"
    )


def _undecided(c: Comparison, name: str) -> str:
    return (
        f"No difference shown between {name} and {BASELINE} in labels needed to reach {level(c.level)} "
        f"({_middle(c)}95 % CI {bounds(c)}, {seeds(c.seeds)})"
    )


def _middle(c: Comparison) -> str:
    return f"{signed(c.saved)} on average, " if c.saved else ""


def _single(c: Comparison, name: str) -> str:
    many = f"{signed(c.saved)} labels than" if c.saved else "as many labels as"
    return (
        f"One seed shows no difference: in it {name} needed {many} {BASELINE} to reach {level(c.level)}, "
        "but without a second seed there is no interval"
    )


def _never(c: Comparison, name: str) -> str:
    return (
        f"{name} does not reach {level(c.unreached)} with {c.budget:.0f} labels in {c.censored} of {seeds(c.seeds)}, "
        f"and {BASELINE} does; there is no lower level at which to compare them"
    )


def _nothing(c: Comparison, name: str) -> str:
    if c.seeds == 0:
        return f"{name} and {BASELINE} have no seed in common, so they cannot be compared"
    return f"No difference shown between {name} and {BASELINE}: {BASELINE} does not improve on its start"


def _unreached(c: Comparison) -> str:
    if c.verdict == "never" or c.unreached is None or not math.isfinite(c.budget):
        return ""
    return (
        f"; {level(c.unreached)}, which {BASELINE} reaches, it does not reach with {c.budget:.0f} labels "
        f"in {c.censored} of {seeds(c.seeds)}"
    )


def _gained(g: Gain) -> str:
    """Accuracy, where it differs: savings at one level say little of curves that part late, or cross."""
    if g.low <= 0 <= g.high:
        return ""
    where = "over the whole curve" if g.labels is None else f"with {g.labels:.0f} labels"
    points = f"{abs(100 * g.gain):.1f} points {'more' if g.gain > 0 else 'less'} accurate"
    low, high = sorted((100 * abs(g.low), 100 * abs(g.high)))
    return f"; {where} it is {points} (95 % CI {low:.1f}–{high:.1f})"


_SAID = {
    "fewer": _decided,
    "more": _decided,
    "undecided": _undecided,
    "single": _single,
    "never": _never,
    "nothing": _nothing,
}
