"""The look of the studies' figures, by matplotlib: an extra, imported only when something is drawn."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ENDINGS = ("png", "svg", "pdf")
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9")  # of Okabe and Ito
BLUE, ORANGE, GREEN, PINK, YELLOW, SKY = COLOURS
SHADES = "cividis"  # told apart by nearly everybody, and in print
_STYLE: dict[Any, Any] = {
    "svg.hashsalt": "balent",
    "font.size": 8,
    "axes.titlesize": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": False,
    "legend.frameon": False,
    "lines.linewidth": 1.4,
}


@contextmanager
def style() -> Iterator[None]:
    """Inside, figures are drawn and saved in one look."""
    import matplotlib

    with matplotlib.rc_context(_STYLE):
        yield


def panels(rows: int, columns: int, width: float = 2.6, height: float = 2.4, **settings: Any) -> tuple[Any, Any]:
    """A figure, and its axes as an array [rows, columns]; width and height are those of one panel, in inches."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width * columns, height * rows), layout="constrained")
    return figure, figure.subplots(rows, columns, squeeze=False, **settings)


def save(figure: Any, path: Path) -> None:
    """The same table gives the same file."""
    with style():
        figure.savefig(path, dpi=110, metadata={"Date": None} if path.suffix == ".svg" else {})
    if path.suffix == ".png":
        _lighten(path)


def _lighten(path: Path) -> None:
    """128 colours are enough for lines and dots, and make a third of the file."""
    from PIL import Image  # which matplotlib brings along

    with Image.open(path) as image:
        few = image.convert("RGB").quantize(128)
    few.save(path, optimize=True)


def check(ending: str, page: bool = False) -> None:
    """Can such a figure be drawn here?  Asked before a study takes its time."""
    if ending not in ENDINGS:
        raise ValueError(f"figures are written as {', '.join(ENDINGS)}, but {ending!r} was asked for")
    if page and ending == "pdf":
        raise ValueError("a page of Markdown shows no .pdf; take --format png or svg")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise ValueError("the figures of a study need matplotlib: pip install 'balent[report]'") from None
