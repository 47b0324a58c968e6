"""The model of an experiment: its network and its predictor, with the first weights of a seed."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any

from torch import Generator, nn

from balent import by_name, checks
from balent.data.sources import Data
from balent.lookup import lookup
from balent.loop.seeds import seed_of
from balent.predictors import PREDICTORS, Classifier
from balent.predictors.estimators import Estimator
from balent.predictors.training import reproducible
from balent.predictors.wrapped import predictor_of
from balent.types import Predictor

if TYPE_CHECKING:
    from balent.simulation.experiment import Experiment

TRAINING = {name: name for name in ("epochs", "batch_size", "learning_rate", "weight_decay", "warm_start", "augment")}
SETTINGS: dict[str, dict[str, str]] = {  # others take TRAINING
    "logistic": {},
    "gaussian_process": {"iterations": "epochs", "learning_rate": "learning_rate"},
}


def predictor_named(name: str) -> Callable[..., Any]:
    """What makes a predictor: one of PREDICTORS, or a user's own class or function, `file.py:name` or `module:name`."""
    return by_name.function(name) if by_name.is_name(name) else lookup(PREDICTORS, name, "predictor")


def predictor(spec: "Experiment", data: Data) -> Predictor:
    """The model with the first weights of its seed."""
    with reproducible(Generator().manual_seed(seed_of(spec.seed, "initial weights"))):
        return _own(spec, data) if by_name.is_name(spec.predictor) else _known(spec, data)


def _known(spec: "Experiment", data: Data) -> Predictor:
    network = _network(spec, data)
    if spec.predictor == "classifier":
        return Classifier(network, data.classes)
    if not isinstance(network, nn.Module | int):
        raise TypeError(f"{spec.network} must make a torch module, but made {type(network).__name__}")
    names = SETTINGS.get(spec.predictor, TRAINING)
    settings = {name: getattr(spec, field) for name, field in names.items()}
    return PREDICTORS[spec.predictor](network, **settings)


def _own(spec: "Experiment", data: Data) -> Predictor:
    """A user's own predictor, or an estimator: its arguments are filled by their names."""
    offered: dict[str, Callable[[], Any]] = {
        "network": lambda: _network(spec, data),
        "data": lambda: data,
        **{name: partial(getattr, spec, name) for name in TRAINING},
    }
    made = by_name.filled(spec.predictor, offered)
    if isinstance(made, Estimator):
        return predictor_of(made, data.classes, name=spec.predictor)
    if not isinstance(made, Predictor):
        try:
            checks.predictor(made)
        except TypeError as error:
            raise TypeError(f"{spec.predictor} must make a predictor: {error}") from None
    return made


def _network(spec: "Experiment", data: Data) -> Any:
    options = {"backbone": spec.backbone} if spec.backbone else {}
    expected = "the data" + (" and backbone=…" if options else "")
    return by_name.made(spec.network, data, expected=expected, **options)
