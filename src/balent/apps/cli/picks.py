"""balent acquire: a model and a pool that the command line names."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from balent.apps.cli.terminal import errors_in_words, say, show_table, write_csv, wrote

if TYPE_CHECKING:
    from balent.types import Picks, Sampled


def acquire(
    model: Annotated[str, typer.Argument(help="MODULE:FACTORY (or FILE.py:FACTORY) of a torch module or predictor.")],
    pool: Annotated[str, typer.Argument(help="An .npy or .npz, or MODULE:FACTORY of a Dataset or DataLoader.")],
    k: Annotated[int, typer.Option("-k", help="How many points to pick.")],
    strategy: Annotated[str, typer.Option("--strategy", "-s", help="See balent list; or FILE.py:NAME.")] = "auto",
    draws: Annotated[
        str, typer.Option(help="A number, auto (more where undecided) or analytic (none at all).")
    ] = "100",
    masks: Annotated[
        str, typer.Option(help="auto: per-point where that can be; shared: a draw is one network for all points.")
    ] = "auto",
    design: Annotated[str, typer.Option(help="independent, stratified or matched.")] = "independent",
    seed: Annotated[int, typer.Option(help="Of the draws and the strategy.")] = 0,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", help="Write a CSV instead of a table; - is standard output.")
    ] = None,
    scores: Annotated[Path | None, typer.Option(help="Write every score to this .npy or .parquet.")] = None,
    error: Annotated[bool, typer.Option("--error", help="Add the Monte-Carlo standard error of each score.")] = False,
    key: Annotated[str | None, typer.Option(help="Which array of an .npz.")] = None,
) -> None:
    """Pick points of your own pool with your own model.  balent acquire models.py:classifier pool.npy -k 500

    The factory is called without arguments. A torch module with dropout becomes MC dropout; anything with
    .sample(n, seed=...) is a predictor. Memory does not grow with the pool.
    """
    from balent.acquisition import loading, pages
    from balent.acquisition.acquire import acquire as acquired

    pages.keep()
    with errors_in_words():
        sampled = loading.sampled(model, draws, strategy, seed=seed, masks=masks, design=design)
        picks = acquired(
            sampled,
            loading.pool(pool, key),
            k,
            strategy,
            seed=seed,
            draws="auto" if draws == "auto" else None,
            with_error=error,
            scores=scores,
            progress=sys.stderr.isatty(),
        )
        header = ["rank", "point", "score", *(["error"] if picks.errors is not None else [])]
        columns = [c.tolist() for c in (picks.indices, picks.scores, picks.errors) if c is not None]
        rows = ([rank, *row] for rank, row in enumerate(zip(*columns, strict=True), 1))
        write_csv(output, header, rows) if output else show_table(header, rows)
        if scores is not None:
            wrote(scores)
        for line in _about(sampled, picks):
            say(line)


def _about(sampled: "Sampled", picks: "Picks") -> Iterator[str]:
    """Lines about how the picks were found and how reliable they are."""
    from balent import adapt

    if plan := adapt.traits(sampled).plan:
        yield f"how: {plan}"
    if picks.draws is not None:
        yield f"{picks.draws:.0f} draws per point; at least {picks.confidence:.0%} of the picks are those of all draws"
    if picks.stability is not None:
        yield f"two halves of the draws agree on {picks.stability:.0%} of the top {len(picks.indices)}"
