"""`check_predictor` finds every broken promise: a predictor that breaks each, and nothing on good ones."""

from types import SimpleNamespace

import pytest
import torch
from helpers.labelled import network
from sklearn.linear_model import LogisticRegression
from torch import Generator

from balent import Classifier, MCDropout, Moments, check_predictor
from balent.contracts import predictor_contract as contract
from balent.contracts.promises import BrokenPromise


class Good:
    """Softmax of one linear map per draw: weights are learnt in a few steps from where the last fit ended."""

    classes = 3

    def __init__(self):
        self.w = torch.zeros(4, self.classes)

    def fit(self, labelled, *, generator):
        x, y = labelled
        hot = torch.nn.functional.one_hot(y, self.classes).float()
        for _ in range(5):
            some = torch.randperm(len(x), generator=generator)[: len(x) // 2]
            wrong = (x[some] @ self.w).softmax(-1) - hot[some]
            self.w = self.w - x[some].T @ wrong / len(some)

    def sample(self, n, *, seed, masks="shared"):
        noise = torch.randn(n, *self.w.shape, generator=Generator().manual_seed(seed))
        return Drawn(self.w + 0.3 * noise)

    def state(self):
        return {"w": self.w}

    def load_state(self, state):
        self.w = state["w"]


class Drawn:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, batch, positions=None):
        return torch.einsum("pf,nfc->pnc", batch, self.weights).softmax(-1)

    def moments(self, batch, positions=None):
        return Moments.of(self(batch, positions))


def drawn(**methods):
    """A good predictor whose draws have other methods."""
    own = type("Own", (Drawn,), methods)
    globals()["Own"] = own
    own.__module__, own.__qualname__ = __name__, "Own"
    return predictor(sample=lambda self, n, *, seed, masks="shared": own(Good.sample(self, n, seed=seed).weights))


def predictor(**methods):
    return type("Mine", (Good,), methods)


def logits(self, batch, positions=None):
    return torch.einsum("pf,nfc->pnc", batch, self.weights)


def of_one_class_fewer(self, batch, positions=None):
    return Drawn.__call__(self, batch)[..., :2]


def of_a_batch(self, batch, positions=None):
    return Drawn.__call__(self, batch - batch.mean(0))


CALLS = [0]


def of_a_call(self, batch, positions=None):
    CALLS[0] += 1
    return Drawn.__call__(self, batch + 0.01 * CALLS[0])


class Lazy:
    """It looks at the weights of the predictor when it is called."""

    def __init__(self, source, noise):
        self.source, self.noise = source, noise

    def __call__(self, batch, positions=None):
        return Drawn(self.source.w + self.noise)(batch)

    def moments(self, batch, positions=None):
        return Moments.of(self(batch))


def lazily(self, n, *, seed, masks="shared"):
    return Lazy(self, 0.3 * torch.randn(n, *self.w.shape, generator=Generator().manual_seed(seed)))


def with_a_lambda(self, n, *, seed, masks="shared"):
    found = Good.sample(self, n, seed=seed)
    found.scale = lambda x: x
    return found


def fit_and_seed(self, labelled, *, generator):
    torch.manual_seed(3)
    Good.fit(self, labelled, generator=torch.default_generator)


def fit_by_chance(self, labelled, *, generator):
    Good.fit(self, labelled, generator=Generator().manual_seed(Generator().seed()))


def by_position(self, n, *, seed, masks="shared"):
    """Says that masks belong to positions, and does not look at them."""
    return Good.sample(self, n, seed=seed)


def grown_over(self, classes):
    """The new class begins beside what was learnt."""
    self.classes, self.w = classes, torch.nn.functional.pad(self.w, (0, classes - self.w.shape[1]))


BROKEN = [
    (lambda: SimpleNamespace(fit=None, sample=None, state=None), contract.has_the_methods_of_a_predictor, "load_state"),
    (drawn(moments=None), contract.has_the_methods_of_a_predictor, "no method moments|not callable"),
    (drawn(__call__=logits), contract.draws_are_distributions, "take the softmax of logits"),
    (
        drawn(__call__=of_one_class_fewer),
        contract.draws_are_distributions,
        r"have shape \(11, 5, 2\), not \(11, 5, 3\)",
    ),
    (
        predictor(sample=lambda self, n, *, seed, masks="shared": Drawn(self.w.repeat(n, 1, 1))),
        contract.draws_differ,
        "is the model stochastic",
    ),
    (
        drawn(moments=lambda self, batch, positions=None: Moments.of(self(batch * 0.9))),
        contract.moments_are_those_of_the_draws,
        "their mean is another",
    ),
    (drawn(__call__=of_a_batch), contract.draws_do_not_depend_on_the_batch, "in batches of 1 they are others"),
    (
        drawn(features=lambda self, batch: batch - batch.mean(0)),
        contract.features_do_not_depend_on_the_batch,
        "in batches of 4 they are others",
    ),
    (predictor(sample=lazily), contract.draws_stay_when_the_predictor_learns, "copy the weights in sample"),
    (
        predictor(fit=lambda self, labelled, *, generator: None),
        contract.draws_stay_when_the_predictor_learns,
        "does fit",
    ),
    (predictor(sample=with_a_lambda), contract.draws_can_be_sent, "pickle"),
    (
        predictor(sample=lambda self, n, *, seed, masks="shared": Good.sample(self, n, seed=0)),
        contract.seed_decides_the_draws,
        "another seed gives the same draws",
    ),
    (predictor(fit=fit_by_chance), contract.generator_decides_what_is_learnt, "two fits alike give other draws"),
    (predictor(fit=fit_and_seed), contract.leaves_global_randomness_alone, "the random numbers of torch"),
    (
        predictor(per_point=True, sample=by_position),
        contract.masks_belong_to_positions,
        "the same draws at every position",
    ),
    (
        predictor(state=lambda self: {}, load_state=lambda self, state: None),
        contract.state_is_what_the_next_fit_starts_from,
        "put into state all that a fit starts from",
    ),
    (predictor(state=lambda self: self.w), contract.state_is_what_the_next_fit_starts_from, "not a dict of tensors"),
    (predictor(width=lambda self, batch: 4), contract.width_is_the_number_of_classes, "it is 4, but draws have 3"),
    (predictor(grow=grown_over), contract.grows_as_if_it_had_been_made_so, "grows into another"),
]


def first_line(promise):
    return promise.__doc__.splitlines()[0].rstrip(".")


@pytest.mark.parametrize(
    ("made", "promise", "said"), BROKEN, ids=[f"{row[1].__name__} {i}" for i, row in enumerate(BROKEN)]
)
def test_a_broken_promise_is_found_and_said(made, promise, said):
    with pytest.raises(BrokenPromise, match=said) as raised:
        check_predictor(made)
    assert first_line(promise) in str(raised.value)


def test_draws_that_differ_from_call_to_call_are_found():
    """Of moments, too; whichever is looked at first is named."""
    with pytest.raises(BrokenPromise, match=f"{first_line(contract.moments_are_those_of_the_draws)}|two calls differ"):
        check_predictor(drawn(__call__=of_a_call))
    trial = contract.Trial(drawn(__call__=of_a_call), contract.clouds(60, 0), contract.clouds(11, 9)[0])
    with pytest.raises(BrokenPromise, match="two calls differ; draw random numbers in sample"):
        contract.draws_are_the_same_at_every_call(trial)


class Counts(Good):
    """What is learnt depends on the number of fits so far, which `state` does not hold."""

    fits = 0

    def fit(self, labelled, *, generator):
        self.fits += 1
        super().fit(labelled, generator=generator)
        self.w = self.w.roll(self.fits, 0)


def test_a_learner_that_cannot_go_on_is_found():
    trial = contract.Trial(Counts, contract.clouds(60, 0), contract.clouds(11, 9)[0])
    with pytest.raises(BrokenPromise, match="with a new process for each batch it picks"):
        contract.a_killed_learner_goes_on(trial)


def test_every_promise_has_a_predictor_that_breaks_it():
    apart = {contract.draws_are_the_same_at_every_call, contract.a_killed_learner_goes_on}
    assert {promise for _, promise, _ in BROKEN} | apart == set(contract.SUITE)


@pytest.mark.parametrize(
    "good",
    [Good, Good(), MCDropout(network(), epochs=3), Classifier(LogisticRegression(), 3)],
    ids=["class", "object", "mc dropout", "classifier"],
)
def test_good_predictors_keep_all_promises(good):
    assert check_predictor(good).broken == []


def test_points_of_ones_own(tmp_path):
    """Images, with labels of two classes."""
    x, y = torch.randn(24, 1, 4, 4, generator=Generator().manual_seed(0)), torch.arange(24) % 2
    model = torch.nn.Sequential(torch.nn.Flatten(), *network(16, 2))
    found = check_predictor(MCDropout(model, epochs=3), (x, y), stop=False)
    assert found.broken == []
    assert len(found) == len(contract.SUITE)


def test_the_predictor_that_was_passed_is_not_trained():
    mine = Good()
    check_predictor(mine)
    assert torch.equal(mine.w, torch.zeros(4, 3))
