"""A predictor of what a factory made: users return the model they have, whatever it is."""

from collections.abc import Sequence

from torch import nn

from balent.predictors.classifier import Classifier
from balent.predictors.estimators import Estimator
from balent.predictors.mc_dropout import MCDropout
from balent.types import Predictor


def predictor_of(made: object, classes: int | Sequence[str] | None = None, *, name: str = "the factory") -> Predictor:
    """A predictor as it is; a torch module with dropout as MCDropout; an estimator as Classifier.

    made      what the factory returned
    classes   their number or names, for estimators, which do not know them before they are trained
    name      of the factory, for the error
    """
    if isinstance(made, Classifier) and made.classes is None and classes is not None:
        return Classifier(made.estimator, classes, flatten=made.flatten)
    if isinstance(made, nn.Module):
        return MCDropout(made)
    if isinstance(made, Predictor) and not isinstance(made, type):
        return made
    if isinstance(made, Estimator) and not isinstance(made, type):
        return Classifier(made, classes)
    what = f"the class {made.__name__} itself" if isinstance(made, type) else type(made).__name__
    raise TypeError(
        f"{name} must make a torch module with dropout, an estimator with fit and predict_proba, or a predictor with "
        f"fit, sample, state and load_state, but made {what}"
    )
