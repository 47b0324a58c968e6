"""Estimators of other libraries as predictors: what they see, what comes back, and that a resumed run goes on."""

import pickle
import random
import warnings

import numpy as np
import pytest
import torch
from helpers.examples import normal
from helpers.labelled import blobs, generator
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.compose import ColumnTransformer
from sklearn.dummy import DummyClassifier
from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier, VotingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.svm import LinearSVC
from torch.testing import assert_close

from balent import Classifier, Learner, acquire
from balent.data.pool import as_source
from balent.loop import fingerprint
from balent.predictors.estimator_inputs import as_rows

WORDS = {0: ["goal", "match", "team", "score"], 1: ["bank", "loan", "rate", "market"], 2: ["virus", "cell", "gene"]}


def texts(points=60, seed=0):
    """Four words, three of them of the text's class."""
    chance = random.Random(seed)
    y = [i % 3 for i in range(points)]
    everything = [word for words in WORDS.values() for word in words]
    return [" ".join([*chance.choices(WORDS[c], k=3), chance.choice(everything)]) for c in y], torch.tensor(y)


def overlapping(points=60, seed=0):
    """Clouds that touch each other."""
    x, y = blobs(points, seed=seed)
    return x + 0.7 * normal(points, 4, seed=seed + 1, dtype=torch.float32), y


class Nearest:
    """As of a library that knows nothing of scikit-learn: no weights, no parameters, names only what it saw."""

    def __init__(self, noise=0.0):
        self.noise = noise

    def fit(self, X, y):
        if len(set(y)) < 2:
            raise ValueError("two classes are needed")
        assert set(y) == set(range(max(y) + 1)), "XGBoost takes classes without a gap alone"
        self.means = np.stack([X[y == c].mean(0) for c in sorted(set(y))])
        self.means += self.noise * np.random.standard_normal(self.means.shape)  # noqa: NPY002 - as others do
        return self

    def predict_proba(self, X):
        near = np.exp(-((X[:, None] - self.means) ** 2).sum(-1) / 2) + 1e-9
        return near / near.sum(1, keepdims=True)


class Echo(ClassifierMixin, BaseEstimator):
    """Remembers what it was given."""

    def fit(self, X, y, sample_weight=None):
        self.classes_, self.weights = np.unique(y), sample_weight

    def predict_proba(self, X):
        return np.full((len(X), len(self.classes_)), 1 / len(self.classes_))


def forest(**settings):
    return RandomForestClassifier(**{"n_estimators": 5, **settings})


def boosting():
    return HistGradientBoostingClassifier(max_iter=5, min_samples_leaf=2)


def text_pipeline():
    return make_pipeline(TfidfVectorizer(), LogisticRegression())


ESTIMATORS = {
    "forest": (forest, blobs),
    "boosting": (boosting, blobs),
    "text": (text_pipeline, texts),
    "nobody's": (Nearest, blobs),
    "neighbours": (lambda: KNeighborsClassifier(3), overlapping),
    "scaled": (lambda: make_pipeline(StandardScaler(), LogisticRegression()), blobs),
}
every = pytest.mark.parametrize(("estimator", "data"), ESTIMATORS.values(), ids=ESTIMATORS)


def fitted(estimator, labelled, classes=None, **settings):
    predictor = Classifier(estimator, classes, **settings)
    predictor.fit(labelled, generator=generator())
    return predictor


# ── every estimator ──────────────────────────────────────────────────────────────────────────────


@every
def test_it_learns_and_its_draws_differ(estimator, data):
    sampled = fitted(estimator(), data(45), 3).sample(4, seed=0)
    x, y = data(30, seed=7)
    draws = sampled(x)
    assert draws.shape == (30, 4, 3)
    assert_close(draws.sum(-1), torch.ones(30, 4, dtype=torch.float64))
    assert (draws.mean(1).argmax(1) == y).double().mean() > 0.8  # three classes that are easy to tell apart
    assert all((draws[:, i] - draws[:, j]).abs().max() > 1e-4 for i in range(4) for j in range(i))


@every
def test_a_learner_goes_on_with_the_same_picks_in_every_process(tmp_path, estimator, data):
    """A new Learner for every round, or one for all: bit-equal scores, too."""
    pool, y = data(40, seed=5)

    def rounds(directory, learners, each):
        found = []
        for _ in range(learners):
            with Learner(Classifier(estimator(), 3), pool, "bald", directory=directory, draws=3) as learner:
                for _ in range(each):
                    picks = learner.ask(8)
                    learner.tell(picks.indices, y[picks.indices])
                    found.append((picks.indices.tolist(), picks.scores.tolist()))
        return found

    assert rounds(tmp_path, 3, 1) == rounds(None, 1, 3)


@every
def test_draws_travel_and_the_caller_keeps_the_estimator(estimator, data):
    mine = estimator()
    before = set(vars(mine))
    sampled = fitted(mine, data(30), 3).sample(3, seed=0)
    draws = sampled(data(9, seed=3)[0])
    assert set(vars(mine)) == before  # not fitted
    assert torch.equal(pickle.loads(pickle.dumps(sampled))(data(9, seed=3)[0]), draws)


# ── the bootstrap ────────────────────────────────────────────────────────────────────────────────


def frequencies(estimator, draws=400):
    """Draws of the share of class 1, which 5 of 20 labels have; points do not matter."""
    y = torch.tensor([1] * 5 + [0] * 15)
    return fitted(estimator, (torch.zeros(20, 1), y)).sample(draws, seed=0)(torch.zeros(1, 1))[0, :, 1]


class Share:
    """The share of each class, without weights."""

    def fit(self, X, y):
        self.share = np.bincount(y) / len(y)

    def predict_proba(self, X):
        return np.tile(self.share, (len(X), 1))


@pytest.mark.parametrize(("estimator", "labels"), [(DummyClassifier(strategy="prior"), 21), (Share(), 20)])
def test_the_variance_is_that_of_the_bootstrap(estimator, labels):
    """Exp(1) weights make the share Beta(5, 15): p(1-p)/21. Draws with replacement: p(1-p)/20. 400 draws: ± 5 sd."""
    share = frequencies(estimator)
    variance = 0.25 * 0.75 / labels
    assert abs(float(share.mean()) - 0.25) < 5 * (variance / 400) ** 0.5
    assert abs(float(share.var()) / variance - 1) < 5 * (2 / 400) ** 0.5


def test_weights_go_to_the_last_step_of_a_pipeline():
    """However deep: in a pipeline within a pipeline."""
    inner = Pipeline([("scale", StandardScaler()), ("echo", Echo())])
    sampled = fitted(Pipeline([("first", StandardScaler()), ("inner", inner)]), blobs(12)).sample(2, seed=0)
    sampled(blobs(1)[0])
    weights = [sampled.fits[i].estimator.steps[-1][1].steps[-1][1].weights for i in range(2)]
    assert all(w.min() > 0 and len(set(w)) == 12 for w in weights)
    assert not np.array_equal(*weights)
    assert "by weights" in sampled.plan


def test_a_vote_of_which_one_takes_no_weights_is_drawn_with_replacement():
    vote = VotingClassifier([("a", LogisticRegression()), ("b", KNeighborsClassifier(3))], voting="soft")
    sampled = fitted(vote, blobs(30)).sample(2, seed=0)
    assert sampled(blobs(3)[0]).shape == (3, 2, 3)
    assert "by labels drawn with replacement" in sampled.plan


def test_only_what_is_needed_is_fitted():
    """auto looks at 20 draws: 20 fits of 100, though the pool is tried out first."""
    x, y = blobs(40)
    predictor = fitted(LogisticRegression(), (x, y), 3)
    sampled = predictor.sample(100, seed=0)
    picks = acquire(sampled, x, 3, labelled=x[:5])
    assert len(picks.indices) == 3
    assert len(sampled.fits._members) == 20
    assert torch.equal(sampled.part(7, 9)(x), predictor.sample(9, seed=0)(x)[:, 7:])


def test_each_draw_has_a_seed_of_its_own_that_the_caller_cannot_set_by_accident():
    """random_state=0 in all of them would make forests more alike than they are."""
    seeds = [
        member.estimator.named_steps["randomforestclassifier"].random_state
        for member in map(
            fitted(make_pipeline(forest(random_state=0)), blobs(20)).sample(3, seed=5).fits.__getitem__, range(3)
        )
    ]
    assert len(set(seeds)) == 3


def test_global_randomness_of_others_follows_the_seed_and_is_left_alone():
    """An estimator may draw from numpy's."""
    np.random.seed(3)  # noqa: NPY002
    before = np.random.get_state()[1].copy()  # noqa: NPY002
    first, again, other = (fitted(Nearest(noise=1.0), blobs(20)).sample(2, seed=s)(blobs(5)[0]) for s in (1, 1, 2))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert np.array_equal(np.random.get_state()[1], before)  # noqa: NPY002


def test_a_forest_of_several_threads_gives_the_same_numbers_at_every_call():
    """Threads add up trees as they finish: sums would differ in their last digits."""
    sampled = fitted(forest(n_jobs=2, n_estimators=20), blobs(30)).sample(2, seed=0)
    assert torch.equal(sampled(blobs(50)[0]), sampled(blobs(50)[0]))
    assert sampled.fits[0].estimator.n_jobs == 1


# ── classes ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("estimator", [forest, LogisticRegression, Nearest, boosting])
def test_classes_without_a_label_have_probability_zero(estimator):
    """Labels 1 and 4 of 6: the estimator sees 0 and 1, without a gap."""
    x, y = blobs(20, classes=2)
    draws = fitted(estimator(), (x, torch.tensor([1, 4])[y]), 6).sample(3, seed=0)(x)
    assert draws.shape == (20, 3, 6)
    assert not draws[..., [0, 2, 3, 5]].any()
    assert (draws.mean(1).argmax(1) == torch.tensor([1, 4])[y]).double().mean() > 0.9


def test_a_bootstrap_of_one_class_predicts_that_class():
    """One label of class 1 among five: drawn with replacement, it is missing in a third of the bootstraps."""
    x, y = torch.eye(5, 4), torch.tensor([0, 0, 0, 0, 1])
    draws = fitted(Nearest(), (x, y), 2).sample(30, seed=0)(x)
    alone = (draws[..., 1] == 0).all(0)
    assert 3 <= int(alone.sum()) <= 20  # (4/5)⁵ of 30 is 9.8, ± 4 sd
    assert bool((draws[:, alone, 0] == 1).all())
    assert_close(draws.sum(-1), torch.ones(5, 30, dtype=torch.float64))


def test_labels_are_names_where_classes_have_names():
    x, y = blobs(30)
    names = ["dog", "cat", "bird"]  # their order is the user's, not that of the alphabet
    by_name = fitted(LogisticRegression(), (x, [names[i] for i in y]), names).sample(3, seed=0)(x)
    by_number = fitted(LogisticRegression(), (x, y), names).sample(3, seed=0)(x)
    assert torch.equal(by_name, by_number)
    assert torch.equal(fitted(LogisticRegression(), (x, np.array(names)[y]), names).sample(3, seed=0)(x), by_number)
    with pytest.raises(ValueError, match=r"label 1 is 'cow': the classes are dog, cat, bird"):
        fitted(LogisticRegression(), (x[:2], ["cat", "cow"]), names)
    with pytest.raises(ValueError, match=r"label 0 is 'dog': classes have no names; pass classes="):
        fitted(LogisticRegression(), (x[:2], ["dog", "cat"]), 3)


def test_classes_that_are_not_given_are_those_of_the_labels():
    x, y = blobs(30)
    assert fitted(forest(), (x, y)).sample(2, seed=0)(x).shape == (30, 2, 3)
    named = fitted(LogisticRegression(), (x, [["b", "a", "c"][i] for i in y])).sample(2, seed=0)(x)
    assert torch.equal(named.mean(1).argmax(1), torch.tensor([1, 0, 2])[y])  # in the order of the alphabet
    assert Classifier(forest()).width(x) is None
    learner = Learner(Classifier(forest()), x, "bald", draws=3)
    learner.tell([0, 1, 2], [0, 1, 5])
    assert learner.ask(2) is not None
    assert learner.sampled()(x).shape[-1] == 6


@pytest.mark.parametrize("weights", [{"rare": 50.0}, {1: 50.0}, {"often": 1.0, "rare": 50.0}])
def test_weights_of_classes_by_name_or_number(weights):
    """Points that cannot be told apart: 1 of 11 is rare and weighs 50. Most of the probability is its own, not 1/11."""
    x, y = torch.zeros(11, 2), [0] * 10 + [1]
    estimator = make_pipeline(LogisticRegression(class_weight=weights))
    mean = fitted(estimator, (x, y), ["often", "rare", "never"]).sample(20, seed=0).moments(x[:1]).mean
    assert mean[0, 1] > 0.5
    assert mean[0, 2] == 0


def test_weights_of_a_class_that_a_bootstrap_lacks():
    """scikit-learn refuses a weight of a class that is not there; as with labels drawn with replacement."""

    class Unweighted(LogisticRegression):
        def fit(self, X, y):
            return super().fit(X, y)

    x, _ = blobs(12)
    estimator = Unweighted(class_weight={0: 3.0})
    assert fitted(estimator, (x, torch.tensor([0] + [1, 2] * 5 + [1])), 3).sample(20, seed=0)(x).shape == (12, 20, 3)
    with pytest.raises(ValueError, match="class_weight has the class 'cow', but the classes are cat, dog"):
        fitted(LogisticRegression(class_weight={"cow": 2}), (x, torch.arange(12) % 2), ["cat", "dog"])


def test_balanced_weights():
    """As many of each class, as far as the estimator knows: a share of one half, instead of a quarter."""
    x, y = torch.zeros(20, 1), torch.tensor([1] * 5 + [0] * 15)
    plain, balanced = (
        float(fitted(LogisticRegression(class_weight=w), (x, y)).sample(50, seed=0).moments(x[:1]).mean[0, 1])
        for w in (None, "balanced")
    )
    assert abs(plain - 0.25) < 0.05
    assert abs(balanced - 0.5) < 0.05


# ── points ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", [list, np.array, lambda x: np.array(x, object), lambda x: {"text": np.array(x)}])
def test_pools_of_texts(tmp_path, kind):
    """A Learner over texts begins at random, and goes on by balentacq: texts cannot be compared as vectors."""
    x, y = texts(40)
    pool = kind(x)
    estimator = text_pipeline() if not isinstance(pool, dict) else make_pipeline(First(), *text_pipeline())
    asked = []
    for _ in range(3):
        with Learner(Classifier(estimator, 3), pool, directory=tmp_path, draws=10, say=pytest.fail) as learner:
            picks = learner.ask(6)
            learner.tell(picks.indices, y[picks.indices])
            asked += picks.indices.tolist()
            assert learner.resolved == "balentacq"
            found = learner.sampled().moments(pool).mean.argmax(1)
    assert len(set(asked)) == 18
    assert (found == y).double().mean() > 0.7


class First:
    """A transformer: the only column of a table."""

    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X[:, 0]

    def fit_transform(self, X, y=None):
        return self.transform(X)

    def get_params(self, deep=True):
        return {}

    def set_params(self):
        return self


def test_acquire_says_why_auto_is_balentacq_for_texts():
    x, y = texts(30)
    picks = acquire(fitted(text_pipeline(), (x, y), 3).sample(4, seed=0), x, 3)
    assert picks.plan == (
        "auto: balentacq, since these points are not vectors, and the model has no features of them to compare them by"
    )
    with pytest.raises(ValueError, match="have no features; use a strategy that does not compare points"):
        acquire(fitted(text_pipeline(), (x, y), 3).sample(4, seed=0), x, 3, strategy="badge")


def test_tables_of_numbers_and_texts():
    """Columns of a dict, by their number."""
    _, y = blobs(30)
    pool = {"age": 10.0 * y.double().numpy() + 1, "city": np.array(["Rome", "Oslo", "Lima"])[y]}
    columns = ColumnTransformer([("number", StandardScaler(), [0]), ("city", OneHotEncoder(), [1])])
    predictor = Classifier(make_pipeline(columns, LogisticRegression()), 3)
    learner = Learner(predictor, pool, draws=3)
    for _ in range(2):
        picks = learner.ask(6)
        learner.tell(picks.indices, y[picks.indices])
    assert torch.equal(learner.sampled().moments(pool).mean.argmax(1), y)


def test_rows_of_every_kind():
    x = torch.arange(12.0).reshape(2, 1, 2, 3)
    assert as_rows(x).shape == (2, 6)
    assert as_rows(x, flatten=False).shape == (2, 1, 2, 3)
    assert as_rows(x.bfloat16()).dtype == np.float32
    assert as_rows([x[0], x[1]]).shape == (2, 6)
    assert as_rows(np.arange(3)).shape == (3, 1)
    assert as_rows({"a": np.arange(2), "b": np.ones((2, 3))}).tolist() == [[0, 1, 1, 1], [1, 1, 1, 1]]
    assert as_rows([{"a": 1.0, "b": "x"}, {"a": 2.0, "b": "y"}]).tolist() == [[1.0, "x"], [2.0, "y"]]
    assert as_rows(["a", "bc"]).tolist() == ["a", "bc"]


def test_features_are_the_rows_where_they_are_numbers():
    x, y = blobs(12)
    sampled = fitted(forest(), (x, y)).sample(2, seed=0)
    assert torch.equal(sampled.features(x), x)
    assert sampled.traits.features
    assert not fitted(text_pipeline(), texts(12)).sample(2, seed=0).traits.features


def test_missing_values_are_left_to_the_estimator():
    """Boosting takes NaN; logistic regression does not, and the points are named."""
    x, y = blobs(30)
    holes = x.clone()
    holes[3, 0] = torch.nan
    assert fitted(boosting(), (holes, y)).sample(2, seed=0).moments(holes).mean.isfinite().all()
    with pytest.raises(ValueError, match=r"(?s)LogisticRegression refuses these points: .*look for NaN in the inputs"):
        fitted(LogisticRegression(), (holes, y))
    with pytest.raises(ValueError, match=r"NaN.*at point 3, draw 0"):
        fitted(LogisticRegression(), (x, y)).sample(2, seed=0).moments(holes)


def test_a_pool_of_objects_is_recognised_in_another_process():
    """Defect: its fingerprint was made of addresses in memory."""
    one, other = (as_source(np.array([f"word {i}" for i in range(9)], object)) for _ in range(2))
    assert fingerprint.pin(one, None) == fingerprint.pin(other, None)
    assert fingerprint.pin(one, None) != fingerprint.pin(as_source(np.array(["word"] * 9, object)), None)


# ── refused ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("estimator", "classes", "message"),
    [
        (LinearSVC(), None, "LinearSVC has no predict_proba; some estimators have it on request"),
        (RandomForestClassifier, None, r"RandomForestClassifier is a class; pass RandomForestClassifier\(…\)"),
        (3, None, "int has no fit and no predict_proba"),
        (forest(), 1, "whole number of 2 or more, or names, but is 1"),
        (forest(), True, "whole number of 2 or more"),
        (forest(), "cat", "different names, two or more, or their number, but are 'cat'"),
        (forest(), ["cat", "cat"], "different names"),
    ],
)
def test_what_is_no_estimator_or_no_classes(estimator, classes, message):
    with pytest.raises((TypeError, ValueError), match=message):
        Classifier(estimator, classes)


def test_before_the_first_fit_the_error_says_what_is_missing():
    with pytest.raises(ValueError, match=r"Classifier\(LogisticRegression\) has learnt nothing yet; .*labelled points"):
        Classifier(text_pipeline()).sample(3, seed=0)


def test_answers_of_another_shape_are_refused():
    class Odd(Share):
        def predict_proba(self, X):
            return np.ones(len(X))

    with pytest.raises(
        TypeError, match=r"predict_proba of Odd must give \[points, classes\] = \[2, 2\], but gave \[2\]"
    ):
        fitted(Odd(), (torch.zeros(4, 1), [0, 1, 0, 1])).sample(2, seed=0)(torch.zeros(2, 1))


def test_an_error_of_a_draw_names_it():
    class Moody(Share):
        fits = 0

        def fit(self, X, y):
            type(self).fits += 1
            if type(self).fits == 3:
                raise RuntimeError("not today")
            super().fit(X, y)

    sampled = fitted(Moody(), (torch.zeros(4, 1), [0, 1, 0, 1])).sample(5, seed=0)
    with pytest.raises(RuntimeError, match="not today") as caught:
        sampled(torch.zeros(2, 1))
    assert caught.value.__notes__ == ["while fitting draw 1 of Moody"]


def test_warnings_of_the_estimator_reach_the_user():
    with pytest.warns(UserWarning, match="lbfgs failed"), warnings.catch_warnings():
        fitted(LogisticRegression(max_iter=1), blobs(30))
