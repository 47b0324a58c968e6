"""balent: of everything that is not labelled yet, what should a person label next?

Public names are loaded when first used, so that `balent --help` does not wait for torch.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from balent.acquisition.acquire import acquire as acquire
    from balent.acquisition.draws import Draws as Draws
    from balent.acquisition.engines.ray import RayEngine as RayEngine
    from balent.acquisition.score import score as score
    from balent.acquisition.score import select as select
    from balent.contracts.predictor_contract import check_predictor as check_predictor
    from balent.contracts.strategy_contract import check_strategy as check_strategy
    from balent.data.shards import Shards as Shards
    from balent.loop.learner import Learner as Learner
    from balent.maths.agreement import macro_f1 as macro_f1
    from balent.maths.agreement import mean_iou as mean_iou
    from balent.maths.agreement import token_f1 as token_f1
    from balent.maths.measures import MEASURES as MEASURES
    from balent.maths.measures import dirichlet_bald as dirichlet_bald
    from balent.maths.moments import Moments as Moments
    from balent.predictors import PREDICTORS as PREDICTORS
    from balent.predictors import Classifier as Classifier
    from balent.predictors import Ensemble as Ensemble
    from balent.predictors import GaussianProcess as GaussianProcess
    from balent.predictors import LastLayerLaplace as LastLayerLaplace
    from balent.predictors import Logistic as Logistic
    from balent.predictors import MCDropout as MCDropout
    from balent.predictors import Parts as Parts
    from balent.predictors import SeveralLabels as SeveralLabels
    from balent.predictors import VariationalDropout as VariationalDropout
    from balent.project.project import Project as Project
    from balent.simulation.experiment import Experiment as Experiment
    from balent.simulation.experiment import run as run
    from balent.simulation.recorder import Recorder as Recorder
    from balent.strategies import STRATEGIES as STRATEGIES
    from balent.strategies import Badge as Badge
    from balent.strategies import BatchBALD as BatchBALD
    from balent.strategies import ClusterMargin as ClusterMargin
    from balent.strategies import CoreLog as CoreLog
    from balent.strategies import CoreMSE as CoreMSE
    from balent.strategies import CoreSet as CoreSet
    from balent.strategies import Diverse as Diverse
    from balent.strategies import Herding as Herding
    from balent.strategies import Jitter as Jitter
    from balent.strategies import Power as Power
    from balent.strategies import Race as Race
    from balent.strategies import Seals as Seals
    from balent.strategies import TopK as TopK
    from balent.strategies import Uniform as Uniform
    from balent.types import Picks as Picks

    __version__: str

_HOME = {
    "Badge": "balent.strategies",
    "BatchBALD": "balent.strategies",
    "Classifier": "balent.predictors",
    "ClusterMargin": "balent.strategies",
    "CoreLog": "balent.strategies",
    "CoreMSE": "balent.strategies",
    "CoreSet": "balent.strategies",
    "Diverse": "balent.strategies",
    "Draws": "balent.acquisition.draws",
    "Ensemble": "balent.predictors",
    "Experiment": "balent.simulation.experiment",
    "GaussianProcess": "balent.predictors",
    "Herding": "balent.strategies",
    "Jitter": "balent.strategies",
    "LastLayerLaplace": "balent.predictors",
    "Learner": "balent.loop.learner",
    "Logistic": "balent.predictors",
    "MCDropout": "balent.predictors",
    "MEASURES": "balent.maths.measures",
    "Moments": "balent.maths.moments",
    "PREDICTORS": "balent.predictors",
    "Parts": "balent.predictors",
    "Picks": "balent.types",
    "Power": "balent.strategies",
    "Project": "balent.project.project",
    "Race": "balent.strategies",
    "RayEngine": "balent.acquisition.engines.ray",
    "Recorder": "balent.simulation.recorder",
    "STRATEGIES": "balent.strategies",
    "Shards": "balent.data.shards",
    "Seals": "balent.strategies",
    "SeveralLabels": "balent.predictors",
    "TopK": "balent.strategies",
    "Uniform": "balent.strategies",
    "VariationalDropout": "balent.predictors",
    "acquire": "balent.acquisition.acquire",
    "check_predictor": "balent.contracts.predictor_contract",
    "check_strategy": "balent.contracts.strategy_contract",
    "dirichlet_bald": "balent.maths.measures",
    "macro_f1": "balent.maths.agreement",
    "mean_iou": "balent.maths.agreement",
    "run": "balent.simulation.experiment",
    "score": "balent.acquisition.score",
    "select": "balent.acquisition.score",
    "token_f1": "balent.maths.agreement",
}

__all__ = ["__version__", *_HOME]


def __getattr__(name: str) -> Any:
    if name == "__version__":
        return import_module("importlib.metadata").version("balent")  # it stands in pyproject.toml alone
    if name not in _HOME:
        raise AttributeError(f"module 'balent' has no attribute {name!r}")
    return getattr(import_module(_HOME[name]), name)


def __dir__() -> list[str]:
    return sorted(__all__)
