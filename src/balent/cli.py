"""The command line: parse, call, print. torch is imported by the commands that need it, not by --help."""

import csv
import re
import shlex
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

if TYPE_CHECKING:
    from balent.ranking import Ranking

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    help="Active learning with balanced entropy: of all that is not labelled yet, what should a person label next?",
)
out = Console()
err = Console(stderr=True)


@contextmanager
def errors_in_words() -> Iterator[None]:
    """What the person can mend is said in one sentence; what they cannot keeps its traceback."""
    try:
        yield
    except ModuleNotFoundError:
        raise
    except (ValueError, TypeError, OSError, ImportError) as error:
        err.print(f"[bold red]error:[/] {escape(str(error))}", highlight=False, soft_wrap=True)
        raise typer.Exit(2) from None


@app.command()
def score(
    probs: Annotated[
        Path | None, typer.Argument(help="A .npy, .npz, .csv or .parquet with axes pool, draws, classes.")
    ] = None,
    measure: Annotated[list[str], typer.Option("--measure", "-m", help="May be given several times.")] = ["balentacq"],  # noqa: B006
    top: Annotated[
        int | None, typer.Option(help="How many picks of each measure. Default: 10 on screen, all in a file.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write a CSV instead of a table.")] = None,
    logits: Annotated[bool, typer.Option("--logits", help="The numbers are logits, not probabilities.")] = False,
    error: Annotated[bool, typer.Option("--error", help="Add the Monte-Carlo standard error of each score.")] = False,
    key: Annotated[str | None, typer.Option(help="Which array of an .npz.")] = None,
    seed: Annotated[int, typer.Option(help="Of the random measure.")] = 0,
    example: Annotated[bool, typer.Option("--example", help="Score an example that balent makes itself.")] = False,
) -> None:
    """Score your own probabilities, of any framework.  balent score probs.npy -m balentacq --top 100 -o picks.csv

    CSV and parquet are in long form: columns point, draw, class, probability. One pass over the file serves all
    measures. With --top, each measure's best points come first to last; a CSV without --top has every point in order.
    """
    from balent import ranking, reading

    with errors_in_words():
        if example == (probs is not None):
            raise ValueError("name one file of probabilities, or give --example; see balent score --help")
        source = ranking.example() if probs is None else reading.read(probs, key)
        job = ranking.Job(source, tuple(dict.fromkeys(measure)), logits, error, seed)
        with _progress(source.pool) as advance:
            if output is not None and top is None:
                _write(output, job.columns, job.every_point(advance))
            else:
                best = job.best(min(10, source.pool) if top is None else top, advance)
                _write(output, *best.rows()) if output else _show(best)
        if output is not None:
            _say(f"wrote {output}")


@contextmanager
def _progress(total: int) -> Iterator:
    columns = (TextColumn("scoring"), BarColumn(), MofNCompleteColumn(), TextColumn("points"), TimeRemainingColumn())
    with Progress(*columns, console=err, transient=True, disable=not sys.stderr.isatty()) as progress:
        task = progress.add_task("scoring", total=total)
        yield lambda points: progress.advance(task, points)


def _write(path: Path, header: list[str], rows: Iterator[list]) -> None:
    """All of it or nothing: the file appears under its name when it is complete."""
    from balent.learning.records import whole

    with whole(path) as partial, partial.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header])
        csv.writer(file).writerows(rows)


def _show(best: "Ranking") -> None:
    _table(*best.rows())
    for line in best.remarks():
        out.print(line, highlight=False, soft_wrap=True)


def _table(header: list[str], rows: Iterable[list]) -> None:
    table = Table(*header, box=None, header_style="bold")
    for row in rows:
        table.add_row(*(f"{cell:.6g}" if isinstance(cell, float) else escape(str(cell)) for cell in row))
    out.print(table)


@app.command()
def acquire(
    model: Annotated[str, typer.Argument(help="MODULE:FACTORY (or FILE.py:FACTORY) of a torch module or predictor.")],
    pool: Annotated[str, typer.Argument(help="An .npy or .npz, or MODULE:FACTORY of a Dataset or DataLoader.")],
    k: Annotated[int, typer.Option("-k", help="How many points to pick.")],
    strategy: Annotated[str, typer.Option("--strategy", "-s", help="See balent list.")] = "balentacq",
    draws: Annotated[
        str, typer.Option(help="A number, auto (more where undecided) or analytic (none at all).")
    ] = "100",
    masks: Annotated[
        str, typer.Option(help="auto: per-point where that can be; shared: a draw is one network for all points.")
    ] = "auto",
    design: Annotated[str, typer.Option(help="independent, stratified or matched.")] = "independent",
    seed: Annotated[int, typer.Option(help="Of the draws and the strategy.")] = 0,
    output: Annotated[Path | None, typer.Option("--output", "-o", help="Write a CSV instead of a table.")] = None,
    scores: Annotated[Path | None, typer.Option(help="Write every score to this .npy or .parquet.")] = None,
    error: Annotated[bool, typer.Option("--error", help="Add the Monte-Carlo standard error of each score.")] = False,
    key: Annotated[str | None, typer.Option(help="Which array of an .npz.")] = None,
) -> None:
    """Pick points of your own pool with your own model.  balent acquire models.py:classifier pool.npy -k 500

    The factory is called without arguments. A torch module with dropout becomes MC dropout; anything with
    .sample(n, seed=...) is a predictor. Memory does not grow with the pool.
    """
    from balent import loading
    from balent.learning import pages
    from balent.learning.acquire import acquire as acquired

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
        _write(output, header, rows) if output else _table(header, rows)
        for path in (output, scores):
            if path is not None:
                _say(f"wrote {path}")
        for line in _about(sampled, picks):
            _say(line)


def _about(sampled: Any, picks: Any) -> Iterator[str]:
    """What is worth knowing of a pick beyond its points."""
    if getattr(sampled, "plan", ""):
        yield f"how: {sampled.plan}"
    if picks.draws is not None:
        yield f"{picks.draws:.0f} draws a point; at least {picks.confidence:.0%} of these picks are those of all draws"
    if picks.stability is not None:
        yield f"two halves of the draws agree on {picks.stability:.0%} of the top {len(picks.indices)}"


@app.command()
def run(
    name: Annotated[str, typer.Argument(help="digits, moons, features, …: see balent list.")],
    data: Annotated[
        str | None, typer.Option(help="The folder with data sets (or BALENT_DATA); or other data: a name, or a file.")
    ] = None,
    strategies: Annotated[
        str | None, typer.Option(help="Names with commas between; see balent list. Default: the experiment's own.")
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many; strategies share start set and weights of a seed.")] = 3,
    runs: Annotated[Path, typer.Option("--out", help="The directory that runs are written below.")] = Path("runs"),
    resume: Annotated[bool, typer.Option("--resume", help="Go on with runs that were stopped.")] = False,
    jobs: Annotated[
        int | None, typer.Option(min=1, help="Runs side by side, one thread each. Default: one for each core.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out images that cannot be read.")] = False,
    profile: Annotated[str, typer.Option(help="paper: as printed there; cpu: smaller, for two cores.")] = "paper",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="KEY=VALUE of any setting, as in epochs=50; several times.")
    ] = None,
) -> None:
    """Compare strategies on data whose labels are known.  balent run digits

    Every round trains on what was bought so far, is evaluated, and buys more. Each line of the records is on disk
    before the next round starts: a run that was stopped, or killed, goes on with --resume as if nothing had been.
    At the end come a table, what it shows in words, and a page to open in a browser.
    """
    from balent import screen
    from balent.learning import experiment
    from balent.learning.jobs import side_by_side
    from balent.paper.experiments import EXPERIMENTS, chosen

    with errors_in_words():
        specs = chosen(name, data, _names(strategies), seeds, settings or [], profile)
        own = {spec.data for spec in specs}
        folder = None if data is None or data in own else Path(data)
        if profile != "paper":
            _say(f"{profile} profile: {EXPERIMENTS[name].shrunk(profile) or 'nothing is smaller'}")
        for spec in specs:
            experiment.allowed(spec.directory(runs), spec, resume)
        count = min(jobs or screen.cores(), len(specs))
        try:
            news = side_by_side(specs, runs, count, resume=resume, folder=folder, skip_bad=skip_bad)
            errors = screen.watch(news, specs, count, err)
        except KeyboardInterrupt:
            _say(f"stopped; all finished rounds are kept. Go on with: {_again()}")
            raise typer.Exit(130) from None
        if errors:
            raise ValueError("\n".join([*errors, f"other runs are complete; go on with: {_again()}"]))
        places = list(dict.fromkeys(runs / spec.name for spec in specs))
        _report(places, html=(places[0] if len(places) == 1 else runs) / "report.html")


def _names(strategies: str | None) -> list[str]:
    """Names with commas between; those in brackets separate settings."""
    return re.findall(r"[^,(]+(?:\([^)]*\))?", strategies or "")


def _again() -> str:
    """The command that goes on where this one stops."""
    words = [word for word in sys.argv[1:] if word != "--resume"]
    return shlex.join(["balent", *words, "--resume"])


@app.command()
def report(
    runs: Annotated[list[Path], typer.Argument(help="Directories of runs, or records.jsonl files.")],
    html: Annotated[Path | None, typer.Option(help="Write a page that works offline.")] = None,
    table: Annotated[Path | None, typer.Option("--csv", help="Write every number of the report.")] = None,
    plot: Annotated[Path | None, typer.Option("--png", help="Write the curves as .png, .svg or .pdf.")] = None,
) -> None:
    """What runs show: accuracies, labels saved against random, how sure that is.  balent report runs --html r.html"""
    with errors_in_words():
        _report(runs, html, table, plot)


def _report(runs: list[Path], html: Path | None = None, table: Path | None = None, plot: Path | None = None) -> None:
    from balent.report import load, summary, write_html, write_plot

    found = load(*runs)
    shown = summary(found)
    out.print(shown.table())
    for line in shown.sentences:
        out.print(line, highlight=False, soft_wrap=True)
    for line in shown.remarks:
        _say(line)
    writers = ((html, lambda path: write_html(found, path)), (table, shown.csv), (plot, lambda p: write_plot(found, p)))
    for path, write in writers:
        if path is not None:
            write(path)
            _say(f"wrote {path}")


def _say(line: str) -> None:
    err.print(escape(line), highlight=False, soft_wrap=True)


@app.command()
def embed(
    data: Annotated[str, typer.Argument(help="Images: a data set by name, or an .npz; see balent list.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .npz to write.")],
    backbone: Annotated[
        str, typer.Option(help="A name (see balent list), a file or folder of weights, a hub name, or random:NAME.")
    ] = "efficientnet-lite0",
    folder: Annotated[Path | None, typer.Option("--data", help="Where data sets lie. Default: BALENT_DATA.")] = None,
    image_size: Annotated[
        int | None, typer.Option(min=1, help="Pixels of a side. Default: what the weights were trained with.")
    ] = None,
    batch_size: Annotated[
        int | None, typer.Option(min=1, help="Images at a time. Default: what suits image size and device.")
    ] = None,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")] = "cpu",
    limit: Annotated[
        int | None, typer.Option(min=1, help="Only so many images of pool and test set, the first.")
    ] = None,
    skip_bad: Annotated[bool, typer.Option("--skip-bad", help="Leave out images that cannot be read.")] = False,
) -> None:
    """Compute features of images once.  balent embed svhn --data DIR -o svhn-features.npz

    Then: balent run features --data svhn-features.npz. A run that was stopped, or killed, goes on when the same command
    is given again, and ends with the same file.
    """
    from torch import Generator

    from balent import screen
    from balent.learning import datasets, embedding, pages
    from balent.learning.seeds import seed_of
    from balent.paper import catalogue
    from balent.predictors.training import reproducible

    pages.keep()
    with errors_in_words():
        images = embedding.first(datasets.load(data, folder, skip_bad=skip_bad, say=_say), limit)
        with reproducible(Generator().manual_seed(seed_of(0, "initial weights"))):
            network = catalogue.backbone(backbone, image_size)
        about = {"data": data, "limit": limit, **network.about()}
        size = batch_size or embedding.together(network.image_size or 224, device)
        with _stoppable(), screen.pace("images", err) as show:
            for done, total in embedding.embed(images, network, output, about=about, batch_size=size, device=device):
                show(done, total, "")
        _say(f"{output}: {network.width} features of {total} images")


@app.command()
def simclr(
    data: Annotated[str, typer.Argument(help="Images: a data set by name, or an .npz; labels are not looked at.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The .safetensors to write.")],
    backbone: Annotated[str, typer.Option(help="A name (see balent list); resnet10 for CPUs.")] = "resnet50",
    folder: Annotated[Path | None, typer.Option("--data", help="Where data sets lie. Default: BALENT_DATA.")] = None,
    epochs: Annotated[int, typer.Option(help="How often each image is seen, in two views.")] = 500,
    steps: Annotated[int | None, typer.Option(help="Batches after which to end, if epochs would be longer.")] = None,
    batch_size: Annotated[int, typer.Option(help="Images at a time; each is told from all others.")] = 192,
    learning_rate: Annotated[float, typer.Option(help="Of Adam.")] = 0.0003,
    image_size: Annotated[int, typer.Option(help="Pixels of a side that views are scaled to.")] = 224,
    temperature: Annotated[float, typer.Option(help="Of the loss, NT-Xent.")] = 0.5,
    seed: Annotated[int, typer.Option(help="Of first weights, order and views.")] = 0,
    device: Annotated[str, typer.Option(help="cpu, cuda, cuda:1, …")] = "cpu",
    limit: Annotated[int | None, typer.Option(min=1, help="Only so many images, the first of the pool.")] = None,
) -> None:
    """Train a backbone without labels, by SimCLR.  balent simclr cifar100 --data DIR -o cifar100.safetensors

    Then: balent embed DATA --backbone FILE. Defaults are the paper's. A run that was stopped, or killed, goes on from
    its last checkpoint when the same command is given again, and ends with the same weights.
    """
    from statistics import fmean

    from balent import screen
    from balent.learning import datasets, embedding, pages
    from balent.learning.simclr import SimCLR
    from balent.paper.pretraining import pretrain

    pages.keep()
    with errors_in_words():
        images = embedding.first(datasets.load(data, folder, say=_say), limit)
        settings = SimCLR(epochs, batch_size, learning_rate, image_size, temperature, steps=steps, seed=seed)
        losses: list[float] = []
        with _stoppable(), screen.pace("steps", err) as show:
            for step in pretrain(images, backbone, settings, output, device):
                losses = step.losses
                show(step.done, step.steps, f", loss {fmean(losses[-20:]):.3f}" if losses else "")
        if losses:
            few = max(1, len(losses) // 20)
            _say(f"loss: {fmean(losses[:few]):.3f} in the first {few} steps, {fmean(losses[-few:]):.3f} in the last")
        _say(f"{output}: weights of {backbone}; for features: balent embed {data} --backbone {output} -o FILE.npz")


@contextmanager
def _stoppable() -> Iterator[None]:
    """Ctrl-C ends in a sentence: nothing is lost."""
    try:
        yield
    except KeyboardInterrupt:
        _say("stopped; what was done is kept. The same command goes on from there")
        raise typer.Exit(130) from None


@app.command()
def study(
    name: Annotated[str, typer.Argument(help="moons, fano, …: see balent list; all; or claims, all in one table.")],
    folder: Annotated[Path, typer.Option("--out", help="Where figures and numbers go.")] = Path("studies"),
    ending: Annotated[str, typer.Option("--format", help="Of the figures: png, svg or pdf.")] = "png",
    page: Annotated[Path | None, typer.Option(help="Write claims and figures as a page of Markdown, too.")] = None,
    quick: Annotated[bool, typer.Option("--quick", help="Smaller sizes: a look in seconds, not a result.")] = False,
) -> None:
    """Recompute a figure of the paper, and say which of its claims hold.  balent study moons

    Writes the figure, NAME.csv with the rows that are printed, and NAME.npz with what else the figure shows.
    """
    from balent import checks
    from balent.paper.studies import STUDIES, claims, drawing

    with errors_in_words():
        drawing.check(ending, page is not None)
        chosen = STUDIES if name in ("claims", "all") else {name: checks.lookup(STUDIES, name, "study")}
        found = []
        for one in claims.found(chosen, quick):
            found.append(one)
            written = [str(path) for path in one.write(folder, ending)]
            _say(f"{one.name}: {one.seconds:.0f} s; wrote {', '.join(written)}")
            if name != "claims":
                _rows(one.table)
        _verdicts(claims.rows(found))
        out.print(claims.count(found), highlight=False)
        for path in claims.write(found, folder, ending, page, _command()):
            _say(f"wrote {path}")


def _rows(table: Any) -> None:
    """A table of a study, or its beginning."""
    from balent.paper.studies.claims import LONGEST, shown

    _table(list(table.columns), ([shown(cell) for cell in row] for row in table.rows[:LONGEST]))
    if len(table.rows) > LONGEST:
        _say(f"{LONGEST} of {len(table.rows)} rows; the others are in the .csv")


def _verdicts(rows: list[tuple[str, ...]]) -> None:
    """A claim in two lines: whether it holds, what and where; the paper's number, and ours."""
    colours = {"holds": "green", "does not hold": "red", "in part": "yellow"}
    for answer, claim, where, paper, ours, _ in rows:
        out.print(
            f"[bold {colours[answer]}]{answer}[/]: {escape(claim)} ({escape(where)})", highlight=False, soft_wrap=True
        )
        out.print(f"    paper: {escape(paper)}   ours: {escape(ours)}", highlight=False, soft_wrap=True)


def _command() -> str:
    return shlex.join(["balent", *sys.argv[1:]])


@app.command(name="list")
def list_() -> None:
    """What there is: measures, strategies, predictors, experiments, data sets, studies, the kernel here."""
    from balent import kernels
    from balent.learning.datasets import DATASETS, PUBLISHED
    from balent.measures import MEASURES
    from balent.paper.catalogue import KINDS
    from balent.paper.experiments import EXPERIMENTS
    from balent.paper.studies import STUDIES
    from balent.predictors import PREDICTORS
    from balent.strategies import PREFIXES, STRATEGIES

    with errors_in_words():
        table = Table("measure", "what it is", box=None, header_style="bold")
        for name, f in MEASURES.items():
            table.add_row(name, (f.__doc__ or "").splitlines()[0])
        out.print(table)
        others = [name for name in STRATEGIES if name not in MEASURES] + [f"{prefix}:<measure>" for prefix in PREFIXES]
        out.print(
            f"\n[bold]strategies[/]  every measure (its top k), {', '.join(others)}", highlight=False, soft_wrap=True
        )
        out.print(f"[bold]predictors[/]  {', '.join(PREDICTORS)}", highlight=False, soft_wrap=True)
        out.print(f"[bold]experiments[/] {', '.join(EXPERIMENTS)}", highlight=False, soft_wrap=True)
        sets = ", ".join((*DATASETS, *PUBLISHED))
        out.print(f"[bold]data sets[/]   {sets}, or a file or folder", highlight=False, soft_wrap=True)
        out.print(f"[bold]backbones[/]   {', '.join(KINDS)}", highlight=False, soft_wrap=True)
        out.print(f"[bold]studies[/]     {', '.join(STUDIES)}", highlight=False, soft_wrap=True)
        active = kernels.active()
        how = (
            "plain torch (no compiled kernel was built or it is turned off)"
            if active == "torch"
            else f"compiled, {active}"
        )
        out.print(f"[bold]kernel[/]      {how}", highlight=False, soft_wrap=True)
