"""balent acquire: a model and a pool that the command line names."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from balent.apps.cli.terminal import err, errors_in_words, say, say_left_out, show_table, write_rows, wrote

if TYPE_CHECKING:
    from balent.types import Picks, Sampled


def acquire(
    model: Annotated[str, typer.Argument(help="MODULE:FACTORY (or FILE.py:FACTORY) of a torch module or predictor.")],
    pool: Annotated[str, typer.Argument(help="A file, folder or pattern of shards (also s3://…), or MODULE:FACTORY.")],
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
        Path | None, typer.Option("--output", "-o", help="Write a .csv or .parquet instead of a table; - is a CSV.")
    ] = None,
    scores: Annotated[
        Path | None, typer.Option(help="Write every score to this .npy or .parquet; of shards, to this folder.")
    ] = None,
    labelled: Annotated[
        str | None, typer.Option(help="A file or shards of points that have labels, for strategies that look at them.")
    ] = None,
    error: Annotated[bool, typer.Option("--error", help="Add the Monte-Carlo standard error of each score.")] = False,
    column: Annotated[
        str | None, typer.Option(help="Which column of shards, with commas between several; which array of an .npz.")
    ] = None,
    key: Annotated[
        str | None,
        typer.Option(help="The column of shards that identifies a point: picks do not depend on files then."),
    ] = None,
    size: Annotated[int, typer.Option(help="Pixels per side of images.")] = 224,
    manifest: Annotated[
        Path | None, typer.Option(help="A file for the list of shards; it is made, or continued with new shards.")
    ] = None,
    skip_bad: Annotated[
        bool, typer.Option("--skip-bad", help="Go on without what cannot be read; it is listed.")
    ] = False,
    engine: Annotated[str, typer.Option(help="local: this process; ray: workers, here or on a cluster.")] = "local",
    address: Annotated[str | None, typer.Option(help="With ray: a cluster that runs, such as auto.")] = None,
    workers: Annotated[int | None, typer.Option(help="With ray: processes; by default one for each CPU.")] = None,
    span_rows: Annotated[int | None, typer.Option(help="With ray: points that a worker reads at a time.")] = None,
    resume: Annotated[
        Path | None, typer.Option(help="With ray: a folder for finished spans; the same command goes on from there.")
    ] = None,
) -> None:
    """Pick points of your own pool with your own model.  balent acquire models.py:classifier pool.npy -k 500

    The factory is called without arguments. A torch module with dropout becomes MC dropout; anything with
    .sample(n, seed=...) is a predictor. Memory does not grow with the pool.
    """
    from balent.acquisition import engines, loading, pages
    from balent.acquisition.acquire import acquire as acquired
    from balent.apps.cli import screen

    pages.keep()
    wishes = {"address": address, "workers": workers, "span_rows": span_rows, "journal": resume}
    with errors_in_words(), engines.kept(engines.asked(engine, wishes, say)) as running:
        sampled = loading.sampled(model, draws, strategy, seed=seed, masks=masks, design=design)
        points = loading.pool(pool, column, key, size=size, manifest=manifest, skip_bad=skip_bad)
        known = None if labelled is None else loading.pool(labelled, column, key, size=size)
        with screen.counted("points", err) as progress:
            picks = acquired(
                sampled,
                points,
                k,
                strategy,
                seed=seed,
                draws="auto" if draws == "auto" else None,
                with_error=error,
                scores=scores,
                labelled=known,
                engine=running,
                progress=progress,
            )
        columns = _columns(points, picks)
        rows = map(list, zip(*columns.values(), strict=True))
        write_rows(output, list(columns), rows) if output else show_table(list(columns), rows)
        if scores is not None:
            wrote(scores)
        say_left_out(points)
        for line in _about(sampled, picks):
            say(line)


def _columns(points: object, picks: "Picks") -> "dict[str, list[Any]]":
    """The picks by column, best first; points of shards have ids."""
    import torch

    from balent.data.shards import Shards

    rank, score = list(range(1, len(picks.indices) + 1)), picks.scores.tolist()
    error = {} if picks.errors is None else {"error": picks.errors.tolist()}
    if not isinstance(points, Shards):
        return {"rank": rank, "point": picks.indices.tolist(), "score": score, **error}
    ids = points.ids(torch.as_tensor(picks.indices))
    return {"rank": rank, "id": ids, "score": score, **error, "point": picks.indices.tolist()}


def _about(sampled: "Sampled", picks: "Picks") -> Iterator[str]:
    """Lines about how the picks were found and how reliable they are."""
    from balent import adapt

    if plan := adapt.traits(sampled).plan:
        yield f"how: {plan}"
    if picks.draws is not None:
        yield f"{picks.draws:.0f} draws per point; at least {picks.confidence:.0%} of the picks are those of all draws"
    if picks.stability is not None:
        yield f"two halves of the draws agree on {picks.stability:.0%} of the top {len(picks.indices)}"
