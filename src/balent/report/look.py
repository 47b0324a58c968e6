"""One look for all drawings: a strategy has the same colour and dashes in the plot and on the page.

Colours of Okabe and Ito, which nearly everybody can distinguish, also in print; random is black and dotted. With more
strategies than colours the dashes change.
"""

from collections.abc import Sequence

from balent.report.load import BASELINE

COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")
DASHES = ((), (7, 3), (2, 2), (7, 2, 2, 2))


def look(strategies: Sequence[str]) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Colour and dashes of each."""
    others = [name for name in strategies if name != BASELINE]
    chosen = {
        name: (COLOURS[i % len(COLOURS)], DASHES[i // len(COLOURS) % len(DASHES)]) for i, name in enumerate(others)
    }
    return {**chosen, **({BASELINE: ("#000000", (2, 2))} if BASELINE in strategies else {})}
