"""The reserve, and what a count of right answers says."""

import math
from fractions import Fraction

import pytest

from balent.project import advice, audit


def test_the_reserve_is_a_fifth_and_does_not_depend_on_the_order():
    prints = {n: f"{n:064x}" for n in range(5000)}
    found = audit.reserve(0, prints)
    assert 900 < len(found) < 1100  # 1000 ± 28; wrong once in 2,800 seeds
    assert found == audit.reserve(0, dict(reversed(prints.items())))
    assert found != audit.reserve(1, prints)


def test_later_items_bring_no_old_one_into_the_reserve():
    """Else an item that a strategy chose could become a random check."""
    old = {n: f"{n:064x}" for n in range(15_000)}
    before = audit.reserve(0, old)
    after = audit.reserve(0, old | {n: f"{n:064x}" for n in range(15_000, 30_000)})
    assert len(before) == len(after) == audit.MOST
    assert {n for n in after if n < 15_000} <= set(before)


def test_every_fifth_question_is_a_random_check():
    assert [n for n in range(1, 21) if audit.is_check(n, 5)] == [5, 10, 15, 20]
    assert not any(audit.is_check(n, 0) for n in range(1, 21))


@pytest.mark.parametrize(("right", "of"), [(0, 20), (7, 20), (56, 80), (20, 20)])
def test_the_interval_holds_the_shares_that_the_score_test_accepts(right, of):
    """Wilson's interval inverts the score test: at its ends |p̂ − p| = z √(p (1 − p) / n), or they are 0 and 1."""
    for end in audit.wilson(right, of):
        if 0 < end < 1:
            assert abs(right / of - end) == pytest.approx(audit.Z95 * math.sqrt(end * (1 - end) / of))
        else:
            assert end == pytest.approx(right / of)


def test_folds_hold_each_check_once():
    parts = audit.folds(range(23))
    assert sorted(n for part in parts for n in part) == list(range(23))
    assert {len(part) for part in parts} == {4, 5}


def test_kappa_is_agreement_beyond_chance():
    """By hand: 3 of 4 agree; by chance ½·... = (3·2 + 1·2) / 16 = ½; so κ = (¾ − ½) / ½."""
    assert audit.kappa([(0, 0), (0, 0), (1, 1), (0, 1)]) == Fraction(1, 2)
    assert audit.kappa([(0, 0), (0, 0)]) is None, "no chance to disagree"
    assert audit.kappa([]) is None


def test_a_goal_is_looked_at_only_when_the_number_of_checks_has_doubled():
    assert [advice.looked_at(n) for n in (0, 49, 50, 99, 100, 399, 400)] == [0, 0, 50, 50, 100, 200, 400]


def test_a_goal_takes_about_700_checks():
    """True accuracy 97 %, goal 95 %: the 99 % bound passes at 800, not at 400."""
    for n, reached in ((400, False), (800, True)):
        answers = [1] * round(0.97 * n) + [0] * (n - round(0.97 * n))
        assert ("is reached" in advice.goal(0.95, answers)) == reached


def test_models_that_agree_for_three_rounds_are_stable():
    assert advice.stable([0.5, 0.995, 0.99, 0.99]) is not None
    assert advice.stable([0.995, 0.99, 0.9]) is None
    assert advice.stable([1.0, 1.0]) is None


def test_checks_of_several_labels_count_items_and_labels():
    """Of 40 items 30 are all right; label 1 is wrong on 10, label 0 never. Intervals are Wilson's, as of one label."""
    truth = [{0, 1}] * 40
    found = audit.OfLabels.of([{0, 1}] * 30 + [{0}] * 10, truth, 2)
    assert (found.whole.low, found.whole.high) == audit.wilson(30, 40)
    assert [(one.right, one.of) for one in found.each] == [(40, 40), (30, 40)]


def test_checks_of_several_labels_need_a_guess_each():
    with pytest.raises(ValueError, match="there are 2 items, 1 guesses"):
        audit.OfLabels.of([{0}], [{0}, {1}], 2)
