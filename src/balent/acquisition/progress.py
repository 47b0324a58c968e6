"""Progress of long work: a bar on the terminal or in a notebook, or calls of a user's function."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from time import monotonic

from balent.acquisition import notebook_bar

Report = Callable[[int, int | None], None]  # points done, number of points


@contextmanager
def counting(progress: bool | Report, total: int | None) -> Iterator[Callable[[int], None]]:
    """A function to call with the number of new points; it adds them up, and shows a progress bar if requested."""
    if progress is True:
        with _in_notebook(total) if notebook_bar.is_notebook() else _bar(total) as shown:
            yield shown
        return
    done = 0

    def advance(points: int) -> None:
        nonlocal done
        done += points
        if callable(progress):
            progress(done, total)

    yield advance


@contextmanager
def _in_notebook(total: int | None) -> Iterator[Callable[[int], None]]:
    show, done = notebook_bar.bar(total), 0

    def advance(points: int) -> None:
        nonlocal done
        done += points
        show(done, False)

    yield advance
    show(done, True)


@contextmanager
def _bar(total: int | None) -> Iterator[Callable[[int], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("points, {task.fields[rate]} a second"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task, start = progress.add_task("scoring", total=total, rate="…"), monotonic()

        def advance(points: int) -> None:
            done = progress.tasks[task].completed + points
            progress.update(task, advance=points, rate=f"{done / (monotonic() - start + 1e-9):,.0f}")

        yield advance
