"""Where folds run: in this process, or on a cluster."""

from balent import checks
from balent.acquisition.engines.local import Local
from balent.types import Engine

ENGINES: dict[str, type[Local]] = {"local": Local}


def engine(name: str | Engine) -> Engine:
    """The engine of that name, or the one that is given."""
    return checks.lookup(ENGINES, name, "engine")() if isinstance(name, str) else name
