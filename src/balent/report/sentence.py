"""What the records show, in sentences that a reader may quote.

A sentence claims a difference only where the primary comparison (area under the accuracy curve, corrected over all
strategies of the report) shows one; everything else is "no difference shown", which is not "no difference". Accuracy at
the end and labels saved follow as secondary figures. One seed has no interval and shows nothing.
"""

import math
from collections.abc import Sequence

import numpy as np

from balent.report.compare import Comparison
from balent.report.load import BASELINE, Group
from balent.report.saved import Saved
from balent.report.significance import interval


def sentence(c: Comparison) -> str:
    """One strategy against random: what is claimed, then the secondary figures."""
    return ". ".join(filter(None, [claim(c), _secondary(c, c.strategy)]))


def claim(c: Comparison) -> str:
    """What the primary comparison shows: the only figure that a sentence claims."""
    return _SAID[c.verdict](c, c.strategy)


def headline(found: Sequence[Comparison]) -> str:
    """Of comparisons in the order of their gains: who is more accurate than random."""
    better = [c for c in found if c.verdict == "more"]
    if not better:
        return _no_winner(found)
    others = [c.strategy for c in better[1:]]
    also = f"; {listed(others)} {'is' if len(others) == 1 else 'are'} too" if others else ""
    return f"{claim(better[0])}{also}."


def _no_winner(found: Sequence[Comparison]) -> str:
    if len(found) == 1:
        return f"{claim(found[0])}."
    worse, same, rest = ([c.strategy for c in found if c.verdict == v] for v in ("less", "undecided", "single"))
    many = f" ({seeds(max(c.seeds for c in found))})"
    said = [
        f"{listed(worse)} {'is' if len(worse) == 1 else 'are'} less accurate than {BASELINE}{many}" if worse else "",
        f"no difference from {BASELINE} is shown for {listed(same)}{many}" if same else "",
        f"one seed cannot show a difference from {BASELINE} for {listed(rest)}" if rest else "",
    ]
    text = "; ".join(filter(None, said)) or f"no strategy can be compared with {BASELINE}: see below"
    return f"{text if worse else text[0].upper() + text[1:]}."


def listed(names: Sequence[str]) -> str:
    """a, b and c"""
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def no_comparison(group: Group) -> str | None:
    """Why a group has no sentence, if it has none."""
    if BASELINE not in group.strategies:
        return f"{BASELINE} was not run, so there is nothing to compare with; add it to the strategies"
    if len(group.strategies) == 1:
        return f"Only {BASELINE} was run, so there is nothing to compare it with; add other strategies"
    return None


def percent(share: float) -> str:
    """38 from 0.38; a decimal where the first digit would be lost."""
    value = 100 * abs(share)
    return f"{value:.1f}" if 0 < value < 0.95 else f"{value:.0f}"


def points(share: float) -> str:
    """+1.2 from 0.012, in points of accuracy; one more digit where the first would be lost."""
    value = 100 * share
    if abs(value) < 0.005:
        return "0.0"
    return (f"{value:+.1f}" if abs(value) >= 0.05 else f"{value:+.2f}").replace("-", "−")


def level(accuracy: float | None) -> str:
    return "?" if accuracy is None else f"{round(100 * accuracy, 1):g} %"


def seeds(n: int) -> str:
    return "1 seed" if n == 1 else f"{n} seeds"


def signed(share: float) -> str:
    """Which way and how far: "18 % fewer"."""
    return f"{percent(share)} % {'fewer' if share > 0 else 'more'}"


def p_shown(p: float) -> str:
    return "p < 0.001" if p < 0.001 else f"p = {p:.3f}"


def _more(c: Comparison, name: str) -> str:
    return f"{name} is {c.verdict} accurate than {BASELINE}: {primary(c)}"


def _undecided(c: Comparison, name: str) -> str:
    return f"No difference shown between {name} and {BASELINE}: {primary(c)}"


def _single(c: Comparison, name: str) -> str:
    return f"One seed cannot show a difference between {name} and {BASELINE}: {mean_gain(c)}, without an interval"


def _nothing(c: Comparison, name: str) -> str:
    why = "they have no seed in common"
    if c.seeds:
        why = "there are no two label counts between which all strategies were evaluated"
    return f"{name} and {BASELINE} cannot be compared: {why}"


def primary(c: Comparison) -> str:
    """The mean, its interval and its p value, as the correction leaves them."""
    both = f", both corrected for {c.tests} comparisons" if c.tests > 1 else ""
    ci = f"95 % CI {points(c.low)} to {points(c.high)}"
    return f"{mean_gain(c)} ({ci}, {p_shown(c.p)}{both}; {seeds(c.seeds)})"


def mean_gain(c: Comparison) -> str:
    return f"{points(c.gain)} points on average from {c.span[0]:.0f} to {c.span[1]:.0f} labels"


def _secondary(c: Comparison, name: str) -> str:
    """Not tested: savings at one level, or accuracy at one label count, say little of curves that cross."""
    figures = "; ".join(filter(None, [_labels(c.saved), _unreached(c.saved, name, c.seeds), _end(c)]))
    return f"Secondary, not corrected: {figures}" if figures else ""


def _labels(s: Saved) -> str:
    if s.share is None:
        return ""
    many = f"{signed(s.share)} labels" if abs(s.share) >= 0.0005 else "as many labels"
    return f"{many} to reach {level(s.level)}{_bounds(s)}"


def _bounds(s: Saved) -> str:
    """The interval in words: one sign needs saying once."""
    if s.low is None or s.high is None:
        return ""
    if s.low > 0 or s.high < 0:
        near, far = sorted((s.low, s.high), key=abs)
        return f" (95 % CI {percent(near)} to {signed(far)})"
    return f" (95 % CI {signed(s.low)} to {signed(s.high)})" if s.low or s.high else " (95 % CI 0 %)"


def _unreached(s: Saved, name: str, of: int) -> str:
    if s.unreached is None or not math.isfinite(s.budget):
        return ""
    where = f"in {s.censored} of {seeds(of)} with {s.budget:.0f} labels"
    return f"{name} does not reach {level(s.unreached)} {where}, and {BASELINE} does"


def _end(c: Comparison) -> str:
    if not c.ends:
        return ""
    ends = np.array(c.ends)
    ci = " (95 % CI {} to {})".format(*map(points, interval(ends))) if len(ends) > 1 else ""
    return f"{points(ends.mean())} points with {c.span[1]:.0f} labels{ci}"


_SAID = {"more": _more, "less": _more, "undecided": _undecided, "single": _single, "nothing": _nothing}
