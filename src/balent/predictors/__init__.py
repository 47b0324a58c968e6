"""Distributions over functions: classifiers that know what they do not know."""

from collections.abc import Callable

from balent.predictors.classifier import Classifier
from balent.predictors.ensemble import Ensemble
from balent.predictors.functions import Functions
from balent.predictors.gaussian_process import GaussianProcess
from balent.predictors.laplace import LastLayerLaplace
from balent.predictors.logistic import Logistic
from balent.predictors.mc_dropout import MCDropout
from balent.predictors.of_parts import Parts, SeveralLabels
from balent.predictors.training import Training
from balent.predictors.variational_dropout import VariationalDropout, VariationalLinear
from balent.types import Predictor

PREDICTORS: dict[str, Callable[..., Predictor]] = {
    "mc_dropout": MCDropout,
    "logistic": Logistic,
    "classifier": Classifier,
    "ensemble": Ensemble,
    "laplace": LastLayerLaplace,
    "variational_dropout": VariationalDropout,
    "gaussian_process": GaussianProcess,
}

__all__ = [
    "PREDICTORS",
    "Classifier",
    "Ensemble",
    "Functions",
    "GaussianProcess",
    "LastLayerLaplace",
    "Logistic",
    "MCDropout",
    "Parts",
    "SeveralLabels",
    "Training",
    "VariationalDropout",
    "VariationalLinear",
]
