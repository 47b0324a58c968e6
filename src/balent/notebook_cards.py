"""What objects look like in a notebook: a heading, a table and notes, as a small piece of HTML.

All text is escaped. Colours are the notebook's own, so that light and dark styles both fit. There is no script, no
style sheet and nothing to fetch. No torch here: reports use this file too.
"""

from collections.abc import Iterable, Iterator, Sequence
from html import escape
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from balent.maths.moments import Moments
    from balent.types import Picks

SHOWN = 10  # rows of a long table
BOX = "font-size:0.9em;line-height:1.45;max-width:60em"
TABLE = "margin:0.3em 0;font-variant-numeric:tabular-nums;color:inherit"


def card(title: str, header: Sequence[str], rows: Iterable[Sequence[str]], notes: Iterable[str] = ()) -> str:
    """The first column is text; what follows stands to the right. Notes come after the table, a line each."""
    lines = "".join(_row("td", row) for row in rows)
    table = f'<table style="{TABLE}">{_row("th", header)}{lines}</table>' if lines else ""
    said = "".join(f'<div style="opacity:0.85">{escape(note)}</div>' for note in notes)
    return f'<div style="{BOX}"><strong>{escape(title)}</strong><div style="overflow-x:auto">{table}</div>{said}</div>'


def _row(tag: str, cells: Sequence[str]) -> str:
    sides = ["left", *["right"] * (len(cells) - 1)]
    found = (f'<{tag} align="{side}">{escape(text)}</{tag}>' for side, text in zip(sides, cells, strict=True))
    return f"<tr>{''.join(found)}</tr>"


def more(of: int) -> list[str]:
    """A note on the rows that are not shown."""
    return [f"… and {of - SHOWN:,} more"] if of > SHOWN else []


# ── of picks and moments ─────────────────────────────────────────────────────────────────────────


def of_picks(picks: "Picks") -> str:
    """The first picks, and what is known of all."""
    errors = [] if picks.errors is None else [picks.errors]
    columns = [column[:SHOWN].tolist() for column in (picks.indices, picks.scores, *errors)]
    rows = [[str(point), *(f"{number:.6g}" for number in numbers)] for point, *numbers in zip(*columns, strict=True)]
    header, count = ["point", "score", *["standard error"] * len(errors)], len(picks.indices)
    return card(f"{count:,} picks, best first", header, rows, [*more(count), *_known(picks)])


def _known(picks: "Picks") -> Iterator[str]:
    if picks.stability is not None:
        yield f"two halves of the draws agree on {picks.stability:.0%} of the picks"
    if picks.confidence is not None:
        yield f"all draws would have picked at least {picks.confidence:.0%} of them as well"
    if picks.draws is not None:
        yield f"{picks.draws:.1f} draws per point, on average"
    if picks.plan is not None:
        yield picks.plan


def of_moments(m: "Moments") -> str:
    """For each point the leading class, its probability ± its standard deviation over draws, and entropies in nats."""
    mean, (pool, classes) = m.mean[:SHOWN], m.mean.shape
    shares, leaders = mean.max(-1)
    spreads = m.var[:SHOWN].gather(-1, leaders[:, None])[:, 0].sqrt()
    columns = (leaders, shares, spreads, 0 - mean.xlogy(mean).sum(-1), m.entropy[:SHOWN])
    rows = [
        [str(point), str(leader), f"{share:.3f} ± {spread:.3f}", f"{entropy:.3f}", f"{within:.3f}"]
        for point, (leader, share, spread, entropy, within) in enumerate(
            zip(*(c.tolist() for c in columns), strict=True)
        )
    ]
    title = f"Moments of {m.n:,} draws at {pool:,} points, {classes:,} classes"
    return card(title, ["point", "leading class", "its probability", "H(Y)", "E H(Y|ω)"], rows, more(pool))
