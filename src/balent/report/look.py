"""One look for all drawings: a strategy has its own colour in every report, whatever else is in the report.

Colours are close to those of Okabe and Ito, which nearly everybody can distinguish; each has a form for a light and for
a dark background. `random` has the colour of the text, and dots. Strategies that share a colour have other dashes, and
figures for print have a marker beside the colour, so that lines can be told apart in grey.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from zlib import crc32

from balent.report.load import BASELINE

COLOURS = ("#0072B2", "#D55E00", "#008A64", "#B8558D", "#A87400", "#3595D0", "#6A3D9A", "#8C564B")
ON_DARK = ("#4DA3FF", "#FF8A4C", "#35C795", "#F08CC0", "#F0B43C", "#8FD3FF", "#B79CFF", "#D2A08C")
INK = ("#1A1A1A", "#E6E6E6")  # of random
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*")
DASHES = ((), (7.0, 3.0), (2.0, 2.0), (7.0, 2.0, 2.0, 2.0))
DOTS = (1.5, 2.5)
KNOWN = (  # the first have a colour of their own, the next share it with other dashes
    *("balentacq", "bald", "badge", "entropy", "core_set", "auto", "power_bald", "batch_bald"),
    *("mean_sd", "margin", "core_mse", "balent", "variation_ratio", "herding", "cluster_margin", "core_log"),
)


@dataclass(frozen=True)
class Look:
    """How one strategy is drawn."""

    light: str  # its colour on a light background
    dark: str
    dashes: tuple[float, ...]
    marker: str  # "" for random

    @property
    def line(self) -> str | tuple[int, tuple[float, ...]]:
        """The dashes as matplotlib takes them."""
        return (0, self.dashes) if self.dashes else "-"


RANDOM = Look(*INK, DOTS, "")


def look(strategies: Sequence[str]) -> dict[str, Look]:
    """The look of each. Colours depend on the name alone; dashes differ where a report has two of one colour."""
    taken: set[tuple[int, int]] = set()
    found = {name: _free(name, taken) for name in sorted(strategies, key=_rank) if name != BASELINE}
    return {name: RANDOM if name == BASELINE else found[name] for name in strategies}


def _rank(name: str) -> tuple[int, str]:
    return (KNOWN.index(name) if name in KNOWN else len(KNOWN), name)


def _free(name: str, taken: set[tuple[int, int]]) -> Look:
    """The colour of this name, and the first dashes from its own on that nobody of that colour has."""
    number = KNOWN.index(name) if name in KNOWN else crc32(name.encode("utf-8", "backslashreplace"))
    colour, first = number % len(COLOURS), number // len(COLOURS)
    choices = [(first + i) % len(DASHES) for i in range(len(DASHES))]
    chosen = next((i for i in choices if (colour, i) not in taken), choices[0])
    taken.add((colour, chosen))
    return Look(COLOURS[colour], ON_DARK[colour], DASHES[chosen], MARKERS[colour])
