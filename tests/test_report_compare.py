"""Curves, labels needed, intervals, and the sentence: right where the truth is known."""

import re
from pathlib import Path

import made_up
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from made_up import run

from balent.report.compare import gains, interval, level, t975, versus
from balent.report.curves import Curve, curve, labels_needed, rising
from balent.report.load import Run, groups
from balent.report.sentence import sentence
from balent.report.summary import summary

N = np.array([10.0, 20.0, 30.0])


def compared(speed, seeds, noise=0.0, name="balentacq"):
    """A strategy of known speed against random, over as many seeds."""
    return versus(
        name, [run(name, s, speed, noise) for s in range(seeds)], [run(seed=s, noise=noise) for s in range(seeds)]
    )


# ── curves ───────────────────────────────────────────────────────────────────────────────────────


def test_labels_needed_lie_on_the_line_between_two_evaluations():
    assert labels_needed(N, np.array([0.5, 0.7, 0.9]), 0.8) == pytest.approx(25)
    assert labels_needed(N, np.array([0.5, 0.7, 0.9]), 0.9) == pytest.approx(30)
    assert labels_needed(N, np.array([0.5, 0.7, 0.9]), 0.4) == 10
    assert labels_needed(N, np.array([0.5, 0.7, 0.9]), 0.95) == np.inf


def test_one_lucky_evaluation_does_not_reach_a_level():
    """0.9 between 0.6 and 0.6 is noise: neighbours that fall are averaged to 0.7 before the level is looked for."""
    assert labels_needed(np.arange(1.0, 5), np.array([0.5, 0.6, 0.9, 0.6]), 0.8) == np.inf


@given(st.lists(st.floats(0, 1), min_size=1, max_size=30))
def test_a_rising_curve_rises_and_keeps_the_mean(values):
    fit = rising(np.array(values))
    assert len(fit) == len(values)
    assert (np.diff(fit) >= -1e-12).all()
    assert fit.mean() == pytest.approx(np.mean(values))


def test_the_area_of_a_straight_line_is_its_middle():
    line = Curve(np.array([10.0, 20.0, 40.0]), np.array([[0.1, 0.2, 0.4]]))
    assert line.area(10.0, 40.0) == pytest.approx([0.25])
    assert line.area(15.0, 35.0) == pytest.approx([0.25])
    assert line.at(30.0) == pytest.approx([0.3])
    assert np.isnan(line.at(50.0)).all()


def test_curves_that_never_meet_have_no_area_in_common():
    early, late = run("bald", labels=np.array([10, 20])), run(labels=np.array([30, 40]))
    (findings,) = summary([early, late]).findings
    assert np.isnan(findings.area("bald")).all()
    assert summary([early, late]).sentences


def test_mean_and_band_are_over_seeds():
    both = curve([run(seed=0), run(seed=1)])
    low, high = both.band
    half = abs(both.values[0] - both.values[1]) / np.sqrt(2)  # sample standard deviation of two
    np.testing.assert_allclose(high - low, 2 * half, atol=1e-12)
    assert np.isnan(curve([run()]).std).all()


def test_runs_at_different_label_counts_meet_where_both_have_been():
    both = curve([run(labels=np.array([10, 30, 50])), run(seed=1, labels=np.array([20, 40, 60]))])
    assert both.labels.tolist() == [20, 30, 40, 50]


def test_what_no_run_recorded_has_no_curve():
    assert curve([run()], "brier") is None


# ── the interval ─────────────────────────────────────────────────────────────────────────────────


def test_quantiles_of_t_are_those_of_the_tables():
    """Abramowitz and Stegun, table 26.10; beyond 30 degrees of freedom by expansion."""
    for freedom, value in {1: 12.706, 2: 4.303, 4: 2.776, 30: 2.042, 40: 2.021, 60: 2.000, 120: 1.980}.items():
        assert t975(freedom) == pytest.approx(value, abs=6e-4)


def test_the_interval_by_hand():
    """Mean 2, sd 1, three numbers: 2 ± 4.3027 / √3."""
    assert interval(np.array([1.0, 2.0, 3.0])) == pytest.approx((2 - 4.3027 / 3**0.5, 2 + 4.3027 / 3**0.5))


@pytest.mark.parametrize(("speed", "seeds"), [(1.0, 5), (1.5, 3), (0.7, 4)])
def test_the_interval_holds_the_truth_95_times_in_100(speed, seeds):
    """Of 200 made-up comparisons 190 ± 3.1 hold it; fewer than 178 would happen once in 2,000 tries."""
    held = 0
    for i in range(200):
        mine = range(i * seeds, (i + 1) * seeds)
        c = versus("bald", [run("bald", s, speed, 0.01) for s in mine], [run(seed=s, noise=0.01) for s in mine])
        held += c.low <= 1 - 1 / speed <= c.high
    assert held >= 178


def test_the_level_is_round_and_within_what_all_gain():
    runs = [run(seed=s) for s in range(3)]
    start, end = max(r.series("accuracy")[0] for r in runs), min(r.series("accuracy")[-1] for r in runs)
    assert level(runs) == np.floor(100 * (start + 0.9 * (end - start))) / 100


# ── the sentence ─────────────────────────────────────────────────────────────────────────────────


def straight(strategy, seed, speed):
    """A run whose accuracy is 5 % + 0.2 % for each label, times its speed."""
    rounds = (
        {"round": i, "labels": n, "accuracy": min(1.0, 0.05 + 0.002 * n * speed)}
        for i, n in enumerate(range(20, 420, 20))
    )
    return Run("digits", strategy, seed, tuple(rounds), Path())


def test_the_sentence_by_hand():
    """Random gains from 9 % to 85 %, and 90 % of that is at 77.4 %: 77 % needs 360 labels, at double speed 180.

    Between the curves lies ∫ min(0.002 n, 0.95 - 0.002 n) dn = 106.8 from 20 to 400: 28.1 % of 380.
    """
    c = versus(
        "balentacq", [straight("balentacq", s, 2) for s in range(3)], [straight("random", s, 1) for s in range(3)]
    )
    assert sentence(c) == (
        "BalEntAcq needs 50 % fewer labels than random to reach 77 % (95 % CI 50–50 %, 3 seeds); "
        "over the whole curve it is 28.1 points more accurate (95 % CI 28.1–28.1); "
        "with 400 labels it is 15.0 points more accurate (95 % CI 15.0–15.0)"
    )


def test_a_clear_win():
    """Speed 1.6 needs 1/1.6 of the labels: 37.5 % fewer."""
    c = compared(1.6, 5, 0.01)
    assert 0 < c.low < 0.375 < c.high < 1
    assert re.fullmatch(
        r"BalEntAcq needs \d\d % fewer labels than random to reach 8\d % \(95 % CI \d\d–\d\d %, 5 seeds\)(;.*)?",
        sentence(c),
    )


def test_a_clear_loss():
    """Speed 0.6 needs 1/0.6 of the labels: 67 % more."""
    c = compared(0.6, 5, 0.01, "entropy")
    assert c.low < -0.67 < c.high < 0
    assert re.match(r"Entropy needs \d\d % more labels than random to reach \d\d % \(95 % CI ", sentence(c))


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_no_difference(noise):
    said = sentence(compared(1.0, 5, noise, "bald"))
    assert said.startswith("No difference shown between BALD and random in labels needed to reach ")


def test_a_difference_within_the_noise_is_not_claimed():
    """Two seeds have t = 12.7: 10 % fewer labels are not told from none."""
    c = compared(1.1, 2, 0.02)
    assert c.verdict == "undecided"
    assert "more to" in sentence(c)
    assert "fewer, 2 seeds)" in sentence(c)


def test_one_seed_only_has_no_interval_and_shows_nothing():
    c = compared(1.6, 1)
    assert c.saved == pytest.approx(0.375, abs=0.02)
    assert (c.low, c.high) == (None, None)
    said = sentence(c)
    assert said.startswith("One seed shows no difference")
    assert "no interval" in said
    assert "CI" not in said


def test_a_strategy_that_does_not_get_there_is_compared_lower_and_said_to_be():
    """Speed 0.3 has at 400 labels what random has at 120."""
    c = compared(0.3, 4, 0.002, "entropy")
    assert c.censored == 4
    assert c.level < c.unreached
    said = sentence(c)
    assert "Entropy needs 2" in said
    assert "% more labels than random" in said
    assert "which random reaches, it does not reach with 400 labels in 4 of 4 seeds" in said
    assert re.search(r"; with 400 labels it is \d\d\.\d points less accurate \(95 % CI \d\d\.\d–\d\d\.\d\)$", said)


def test_a_strategy_that_never_moves_is_censored():
    flat = [run("bald", s, labels=made_up.LABELS) for s in range(3)]
    for r in flat:
        for record in r.records:
            record["accuracy"] = 0.1
    said = sentence(versus("bald", flat, [run(seed=s) for s in range(3)]))
    assert said.startswith("BALD does not reach ")
    assert "with 400 labels in 3 of 3 seeds, and random does" in said


def test_only_seeds_that_both_have_are_compared():
    c = versus("bald", [run("bald", s, 1.5) for s in (0, 1, 2)], [run(seed=s) for s in (1, 2, 3)])
    assert c.seeds == 2
    said = sentence(versus("bald", [run("bald", 0)], [run(seed=1)]))
    assert said == "BALD and random have no seed in common, so they cannot be compared"


def test_without_random_there_is_no_claim():
    assert "random was not run" in summary([run("bald")]).sentences[0]
    assert "nothing to compare" in summary([run()]).sentences[0]


def test_random_that_does_not_improve_gives_no_level():
    one = np.array([20])
    said = summary([run("bald", labels=one), run(labels=one)]).sentences
    assert said == ["No difference shown between BALD and random: random does not improve on its start"]


def test_strategies_are_in_order_with_random_last():
    (group,) = groups([run(), run("entropy"), run("bald")])
    assert list(group.strategies) == ["bald", "entropy", "random"]


def test_gains_are_paired_over_the_curve_and_at_its_last_common_count():
    """Gains of 0.1 and 0.2 throughout: mean 0.15, and t₁ · sd / √2 = 12.7062 · 0.05."""
    ends = [(0.7, 0.6), (0.8, 0.6)]
    pairs = [(ended(own, 40), ended(other, 30)) for own, other in ends]
    whole, end = gains(pairs)
    assert (whole.labels, end.labels) == (None, 30)
    for found in (whole, end):
        assert (found.gain, found.low, found.high) == pytest.approx((0.15, 0.15 - 0.63531, 0.15 + 0.63531), abs=1e-5)
    assert gains(pairs[:1]) == ()


def ended(accuracy, labels):
    """A run of 10 labels and more that has this accuracy throughout."""
    rounds = [{"labels": n, "accuracy": accuracy} for n in (10, labels)]
    return Run("digits", "balentacq", 0, tuple(rounds), Path("records.jsonl"))
