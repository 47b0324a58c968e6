"""balent list: where to start, and what there is."""

from balent.apps.cli.first_steps import first_steps
from balent.apps.cli.terminal import errors_in_words, show, show_table


def list_() -> None:
    """Show where to start, and every name that commands take.  balent list

    Measures, strategies, predictors, experiments, data sets, backbones and studies; and the kernel of this machine.
    """
    from balent.maths.measures import MEASURES

    with errors_in_words():
        for line in ("[bold]start here[/]", *first_steps(), ""):
            show(line)
        show_table(
            ["measure", "what it is"], ([name, (f.__doc__ or "").splitlines()[0]] for name, f in MEASURES.items())
        )
        show("Your own: FILE.py:NAME or MODULE:NAME, for a measure, a strategy, a predictor, a network or a data set.")
        show("")
        for what, names in _names().items():
            show(f"[bold]{what}[/]{' ' * (12 - len(what))}{names}")


def _names() -> dict[str, str]:
    """What can be named elsewhere, in words."""
    from balent.data.sources import DATASETS, PUBLISHED
    from balent.maths.measures import MEASURES
    from balent.paper.experiments import EXPERIMENTS
    from balent.paper.studies import STUDIES
    from balent.predictors import PREDICTORS
    from balent.strategies import PREFIXES, STRATEGIES, WRAPPERS
    from balent.vision.catalogue import KINDS

    kinds = [*(f"{prefix}:<measure>" for prefix in PREFIXES), *(f"{wrapper}:<strategy>" for wrapper in WRAPPERS)]
    others = [name for name in STRATEGIES if name not in MEASURES] + kinds
    return {
        "strategies": f"every measure (its top k), {', '.join(others)}",
        "predictors": ", ".join(PREDICTORS),
        "experiments": ", ".join(EXPERIMENTS),
        "data sets": f"{', '.join((*DATASETS, *PUBLISHED))}, or a file or folder",
        "backbones": ", ".join(KINDS),
        "studies": ", ".join(STUDIES),
        "kernel": _kernel(),
    }


def _kernel() -> str:
    from balent import kernels

    active = kernels.active()
    return (
        f"compiled, {active}" if active != "torch" else "plain torch (no compiled kernel was built or it is turned off)"
    )
