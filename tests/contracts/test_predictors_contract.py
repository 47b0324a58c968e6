"""What every entry of PREDICTORS obeys, also tomorrow's: its draws are fixed functions, and its seed decides which.

The promises are those of `balent.check_predictor`; what balent promises of its own predictors beyond them stands here.
"""

import copy
import math

import pytest
import torch
from helpers.labelled import blobs, generator, network
from sklearn.linear_model import LogisticRegression
from torch import nn
from torch.testing import assert_close

from balent.contracts.predictor_contract import SUITE, Trial
from balent.predictors import PREDICTORS, VariationalLinear
from balent.types import Grows, Predictor

CLASSES, N = 3, 5


def variational():
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return nn.Sequential(VariationalLinear(4, 8), nn.Linear(8, CLASSES))


# How to make each one small: its model (the caller's, to be left alone), and the settings that matter.
MODELS = {
    "variational_dropout": variational,
    "gaussian_process": lambda: CLASSES,
    "logistic": lambda: CLASSES,
    "classifier": LogisticRegression,
}
SETTINGS = {
    "gaussian_process": {"iterations": 5, "features": 64},
    "ensemble": {"members": 8, "epochs": 3},
    "logistic": {},
    "classifier": {"classes": CLASSES},
}
ANEW = ("gaussian_process", "logistic", "classifier")  # which start every fit anew
PER_POINT = ["mc_dropout"]  # whose randomness can belong to points


def made(name, **settings):
    model = MODELS.get(name, network)()
    return PREDICTORS[name](model, **(SETTINGS.get(name, {"epochs": 3}) | settings)), model


def fitted(name, seed=0, **settings):
    predictor, _ = made(name, **settings)
    predictor.fit(blobs(), generator=generator(seed))
    return predictor


def pool(points=11):
    return blobs(points, seed=9)[0], torch.arange(points)


every = pytest.mark.parametrize("name", PREDICTORS)
WARM = [name for name in PREDICTORS if name not in ANEW]
EITHER = [*((name, {}) for name in PREDICTORS), *((name, {"warm_start": True}) for name in WARM)]


@pytest.fixture(scope="module")
def trials():
    """A trial of each, cold and warm: what promises may share is trained once."""
    return {(name, *settings): Trial(made(name, **settings)[0], blobs(), pool()[0]) for name, settings in EITHER}


@pytest.mark.parametrize(("name", "settings"), EITHER)
@pytest.mark.parametrize("promise", SUITE, ids=lambda promise: promise.__name__)
def test_it_keeps_what_is_promised_of_every_predictor(trials, promise, name, settings):
    """#14: predictors without a module could not be resumed."""
    promise(trials[(name, *settings)])


@pytest.fixture(scope="module")
def predictors():
    return {name: fitted(name) for name in PREDICTORS}


@every
def test_a_point_that_gives_nan_is_named(predictors, name):
    x, positions = pool()
    x[6] = math.nan
    with pytest.raises(ValueError, match=r"is NaN; .*at point 106, draw 0"):
        predictors[name].sample(N, seed=0).moments(x, positions + 100)


@every
def test_the_generator_decides_what_is_learned(name):
    """Those that start every fit anew learn nothing by chance."""
    first, again, other = (fitted(name, seed).sample(N, seed=0)(*pool()) for seed in (1, 1, 2))
    assert torch.equal(first, again)
    assert torch.equal(first, other) is (name in ANEW)


@pytest.mark.parametrize("name", [name for name in PREDICTORS if name not in PER_POINT])
def test_masks_per_point_are_refused_where_there_are_none(predictors, name):
    with pytest.raises(ValueError, match=r'masks="per-point" has no meaning here: .*; use masks="shared"'):
        predictors[name].sample(N, seed=0, masks="per-point")


def state_of(model):
    """Everything about a module that someone could miss afterwards."""
    parts = [(part.training, len(part._forward_hooks), len(part._forward_pre_hooks)) for part in model.modules()]
    grads = [(p.requires_grad, None if p.grad is None else p.grad.clone()) for p in model.parameters()]
    return copy.deepcopy(model.state_dict()), parts, grads, [id(p) for p in model.parameters()]


@every
@pytest.mark.parametrize("training", [True, False])
def test_sampling_leaves_the_module_as_it_was(name, training):
    predictor, model = made(name)
    predictor.fit(blobs(), generator=generator())
    if not isinstance(model, nn.Module):
        pytest.skip("takes no module")
    model.train(training)
    model[0].eval()
    model[-1].weight.requires_grad_(False)
    model[0].register_forward_hook(do_nothing)
    before = state_of(model)
    sampled = predictor.sample(N, seed=0)
    sampled(*pool()), sampled.moments(*pool()), sampled.features(pool()[0])
    assert_close(state_of(model), before, rtol=0, atol=0)


def do_nothing(*_):
    """A hook of the caller's."""


@every
def test_a_cold_start_forgets(name):
    """Fitting twice is fitting once; where an earlier set was another one, too."""
    predictor = fitted(name)
    predictor.fit(blobs(30, seed=8), generator=generator(8))
    predictor.fit(blobs(), generator=generator())
    assert torch.equal(predictor.sample(N, seed=0)(*pool()), fitted(name).sample(N, seed=0)(*pool()))


@every
def test_a_predictor_that_grows_is_one_that_was_made_as_wide(name):
    """What it was trained on before leaves nothing behind."""
    grown, _ = made(name)
    if not isinstance(grown, Grows):
        pytest.skip("its number of classes is fixed")
    wide = PREDICTORS[name](CLASSES + 1, **SETTINGS.get(name, {}))
    grown.fit(blobs(30, seed=8), generator=generator(8))
    grown.grow(CLASSES + 1)
    for one in (grown, wide):
        one.fit(blobs(classes=CLASSES + 1), generator=generator())
    assert torch.equal(grown.sample(N, seed=0)(*pool()), wide.sample(N, seed=0)(*pool()))


@every
def test_the_number_of_classes_is_known_before_any_fit(name):
    predictor, model = made(name)
    modes = [part.training for part in model.modules()] if isinstance(model, nn.Module) else []
    assert isinstance(predictor, Predictor)
    assert predictor.width(pool()[0]) == CLASSES
    assert modes == ([part.training for part in model.modules()] if isinstance(model, nn.Module) else [])


# ── bad input ────────────────────────────────────────────────────────────────────────────────────

X, Y = blobs(6)
BAD = {
    "a label outside": ((X, torch.tensor([0, 1, 2, 0, 7, 1])), r"labels must be 0\.\.2 .*label 4 is 7"),
    "one class": ((X, torch.ones(6).long()), "at least two classes, but all 6 are class 1"),
    "a label is missing": ((X, Y[:5]), "there are 6 points and 5 labels"),
    "no points": ((X[:0], Y[:0]), "the labelled set is empty"),
    "NaN": ((X * math.nan, Y), "look for NaN in the inputs"),
}


@every
@pytest.mark.parametrize(("labelled", "message"), BAD.values(), ids=BAD)
def test_bad_labelled_sets_are_refused_in_words(name, labelled, message):
    predictor, _ = made(name)
    with pytest.raises(ValueError, match=message):
        predictor.fit(labelled, generator=generator())


@every
@pytest.mark.parametrize(
    ("asked", "message"), [({"n": 0}, "n "), ({"n": 2, "masks": "shard"}, "masks must be .*'shard'")]
)
def test_what_cannot_be_drawn_is_refused_in_words(predictors, name, asked, message):
    with pytest.raises(ValueError, match=message):
        predictors[name].sample(seed=0, **asked)


@every
def test_unknown_settings_are_refused(name):
    with pytest.raises(TypeError, match="epoch_count"):
        made(name, epoch_count=3)
