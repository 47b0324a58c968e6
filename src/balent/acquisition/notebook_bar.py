"""A progress bar in a notebook: one line of HTML that changes in place.

Terminal codes would fill a cell, and rich needs ipywidgets there, which many notebooks lack. What every notebook has is
the display that a kernel can change.
"""

import sys
from collections.abc import Callable
from html import escape
from time import monotonic

PAUSE = 0.2  # seconds between two changes


def is_notebook() -> bool:
    """Whether this process is the kernel of a notebook, rather than a script or IPython on a terminal."""
    if "IPython" not in sys.modules:
        return False
    from IPython import get_ipython

    shell = get_ipython()
    return shell is not None and type(shell).__name__ != "TerminalInteractiveShell"


def bar(total: int | None) -> Callable[[int, bool], None]:
    """A function of the points done, and whether that is all."""
    from IPython.display import HTML, display

    start, last = monotonic(), [0.0]
    handle = display(HTML(_shown(0, total, 0.0)), display_id=True)

    def show(done: int, ended: bool) -> None:
        now = monotonic()
        if ended or now - last[0] > PAUSE:
            last[0] = now
            handle.update(HTML(_shown(done, total, now - start)))

    return show


def _shown(done: int, total: int | None, seconds: float) -> str:
    """Done, of how many, how fast; the length of the bar is unknown where the pool is a stream."""
    length = "" if total is None else f' value="{done}" max="{total}"'
    of = "" if total is None else f" of {total:,}"
    words = f"{done:,}{of} points, {done / (seconds + 1e-9):,.0f} a second, {seconds:.0f} s"
    return f'<div><progress{length} style="width:16em"></progress> {escape(words)}</div>'
