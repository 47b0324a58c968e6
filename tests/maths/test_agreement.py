"""Mean IoU, token F1 and macro F1 against scikit-learn, and against counts by hand."""

import numpy as np
import pytest
from sklearn.metrics import f1_score, jaccard_score

import balent

RNG = np.random.default_rng(0)


def test_mean_iou_is_the_mean_jaccard_score_of_all_pixels():
    found, true = RNG.integers(5, size=(2, 4, 8, 8))
    assert balent.mean_iou(found, true) == pytest.approx(jaccard_score(true.ravel(), found.ravel(), average="macro"))


def test_void_pixels_do_not_count():
    found, true = RNG.integers(5, size=(2, 4, 8, 8))
    true[:, 0] = 255
    expected = jaccard_score(true[:, 1:].ravel(), found[:, 1:].ravel(), average="macro")
    assert balent.mean_iou(found, true, ignore=255) == pytest.approx(expected)


def test_token_f1_is_the_micro_f1_of_all_classes_but_outside():
    found, true = RNG.integers(4, size=(2, 6, 9))
    expected = f1_score(true.ravel(), found.ravel(), labels=[1, 2, 3], average="micro")
    assert balent.token_f1(found, true) == pytest.approx(expected)


def test_macro_f1_is_that_of_scikit_learn():
    found, true = RNG.integers(2, size=(2, 30, 4))
    assert balent.macro_f1(found, true) == pytest.approx(f1_score(true, found, average="macro"))


def test_classes_that_never_occur_are_left_out():
    assert balent.mean_iou(np.array([0, 3]), np.array([0, 3])) == 1
    assert balent.macro_f1(np.array([[1, 0]]), np.array([[1, 0]])) == 1
    assert np.isnan(balent.token_f1(np.array([0]), np.array([0])))


def test_labels_that_are_not_known_do_not_count():
    assert balent.macro_f1(np.array([[1, 1], [1, 0]]), np.array([[1, -100], [1, -100]])) == 1


def test_shapes_and_void_truth_are_refused_in_words():
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(2,\); of probabilities take \.argmax\(-1\)"):
        balent.mean_iou(np.zeros((2, 3)), np.zeros(2))
    with pytest.raises(ValueError, match="every true label is -100"):
        balent.mean_iou(np.zeros(2), np.full(2, -100))
