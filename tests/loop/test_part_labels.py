"""A Learner whose labels are arrays or sets: from ask to predict, on disk and back."""

import numpy as np
import pytest
import torch
from torch import nn

import balent
from balent import report
from balent.loop.seeds import seed_of


def generator(seed=0):
    return torch.Generator().manual_seed(seed)


def pixels():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Conv2d(2, 6, 3, padding=1), nn.ReLU(), nn.Dropout2d(0.3), nn.Conv2d(6, 2, 1))
    return balent.Parts(balent.MCDropout(module, epochs=5), class_axis=1, ignore=255)


def several():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(5, 16), nn.ReLU(), nn.Dropout(0.3), nn.Linear(16, 3))
    return balent.SeveralLabels(balent.MCDropout(module, epochs=5))


IMAGES = torch.randn(30, 2, 4, 5, generator=generator())
MASKS = (IMAGES[:, 0] > 0).long()
ROWS = torch.randn(30, 5, generator=generator())
HELD = (ROWS[:, :3] > 0).long()


def rounds(learner, truth, count=2):
    for _ in range(count):
        picks = learner.ask(3)
        learner.tell(picks.indices, truth[picks.indices])
    return learner


@pytest.mark.parametrize(("make", "pool", "truth"), [(pixels, IMAGES, MASKS), (several, ROWS, HELD)])
@pytest.mark.parametrize("strategy", ["auto", "balentacq"])
def test_a_learner_goes_on_from_its_directory(tmp_path, make, pool, truth, strategy):
    """Killed after two rounds: labels, the next picks and the predictions are those of one that was not."""
    options = {"strategy": strategy, "draws": 6}
    if strategy == "auto" and pool is IMAGES:
        options["start"] = [0, 1, 2]
    whole = rounds(balent.Learner(make(), pool, **options), truth)
    with balent.Learner(make(), pool, directory=tmp_path, **options) as learner:
        rounds(learner, truth)
    with balent.Learner(make(), pool, directory=tmp_path, strategy=strategy) as again:
        assert again.told == whole.told
        assert again.ask(3).indices.tolist() == whole.ask(3).indices.tolist()
        assert torch.equal(again.predict(pool), whole.predict(pool))


def test_predictions_have_the_shape_of_labels():
    pixel = rounds(balent.Learner(pixels(), IMAGES, "bald", draws=4), MASKS)
    assert pixel.predict(IMAGES).shape == (30, 4, 5, 2)
    label = rounds(balent.Learner(several(), ROWS, "bald", draws=4), HELD)
    assert label.predict(ROWS).shape == (30, 3)


def test_a_set_of_names_is_a_row_of_zeros_and_ones():
    learner = balent.Learner(several(), ROWS, classes=["dog", "cat", "night"])
    learner.tell([4, 7, 9], [{"dog", "night"}, set(), [0, 1, 1]])
    assert learner.told == {4: (1, 0, 1), 7: (0, 0, 0), 9: (0, 1, 1)}


def test_pixels_may_be_named():
    learner = balent.Learner(pixels(), IMAGES, classes=["sky", "road"])
    learner.tell([3], [np.full((4, 5), "road")])
    assert learner.told == {3: ((1,) * 5,) * 4}


def test_ignored_pixels_are_kept_as_such():
    learner = balent.Learner(pixels(), IMAGES)
    label = MASKS[0].clone()
    label[0] = 255
    learner.tell([0], [label])
    assert learner.told[0][0] == (-100,) * 5
    assert learner.labels.classes_told() == {0, 1}


def test_one_image_with_two_classes_is_enough_to_train():
    learner = balent.Learner(pixels(), IMAGES, "bald", draws=4)
    assert learner.ask(1).scores.tolist() == [0.0]  # at random
    learner.tell([0], MASKS[:1])
    assert learner.ask(1).scores[0] > 0


def brute(learner, x, y, binary):
    """Accuracy and the metric of the task, from the predictions of the same draws, part by part."""
    sampled = learner.predictor.sample(5, seed=seed_of(learner.seed, "evaluation", len(learner.told)))
    m = sampled.moments(x)
    grid = m.items.grid(m.mean)
    guess = (grid > 0.5).long() if binary else grid.argmax(-1)
    known = y >= 0
    return (guess == y)[known].double().mean(), balent.macro_f1(guess, y) if binary else balent.mean_iou(guess, y)


@pytest.mark.parametrize(("make", "pool", "truth", "binary"), [(pixels, IMAGES, MASKS, 0), (several, ROWS, HELD, 1)])
def test_records_have_the_metrics_of_parts(tmp_path, make, pool, truth, binary):
    """Accuracy counts parts; their own metric stands beside it; a report reads the file."""
    with balent.Learner(make(), pool, "bald", draws=5, directory=tmp_path) as learner:
        learner.tell([0, 1, 2], truth[:3])
        y = truth[10:20].clone()
        y.view(-1)[:3] = -100
        recorder = balent.Recorder(learner, (pool[10:20], y), "shapes", draws=5)
        learner.tell(recorder.ask(2).indices, truth[:2])
        learner.fit()
        right, own = brute(learner, pool[10:20], y, binary)
        record = recorder.finish()
        assert record["accuracy"] == pytest.approx(float(right))
        assert record["macro_f1" if binary else "mean_iou"] == pytest.approx(own)
    assert len(report.load(tmp_path)) > 0


REFUSED = {
    "another shape": (lambda: balent.Learner(pixels(), IMAGES).tell([0], MASKS[:1, :3]), r"\(4, 5\), but has \(3, 5\)"),
    "class numbers for items": (lambda: balent.Learner(pixels(), IMAGES).tell([0], [1]), r"\(4, 5\), but has \(\)"),
    "a class too many": (lambda: balent.Learner(pixels(), IMAGES).tell([0], MASKS[:1] + 1), r"labels must be 0\.\.1"),
    "an unknown name": (
        lambda: balent.Learner(several(), ROWS, classes=["dog", "cat", "night"]).tell([0], [{"dgo"}]),
        "there is no label 'dgo'; did you mean dog",
    ),
    "a number too high": (lambda: balent.Learner(several(), ROWS).tell([0], [{3}]), r"numbers 0\.\.2 .* one is 3"),
    "two labels of one point": (
        lambda: balent.Learner(several(), ROWS).tell([0, 0], HELD[[0, 1]]),
        "a point has one label, but point 0 was given",
    ),
}


@pytest.mark.parametrize(("call", "message"), REFUSED.values(), ids=REFUSED)
def test_labels_that_cannot_be_are_refused_in_words(call, message):
    with pytest.raises(ValueError, match=message):
        call()
