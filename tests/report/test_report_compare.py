"""Curves, labels saved, the primary comparison and its sentence: right where the truth is known."""

import re
from pathlib import Path

import numpy as np
import pytest
from helpers import made_up
from helpers.made_up import run
from hypothesis import given
from hypothesis import strategies as st

from balent.report.compare import Comparison, comparisons, differences, paired
from balent.report.curves import Curve, curve, labels_needed, rising
from balent.report.load import Run, groups
from balent.report.saved import labels_saved, level
from balent.report.sentence import headline, points, sentence
from balent.report.summary import summary

N = np.array([10.0, 20.0, 30.0])


def versus(runs, baseline):
    """One strategy against random, in a report of its own."""
    ((c,),) = [found.values() for found in comparisons(groups([*runs, *baseline]))]
    return c


def compared(speed, seeds, noise=0.0, name="balentacq"):
    """A strategy of known speed against random, over as many seeds."""
    return versus([run(name, s, speed, noise) for s in range(seeds)], [run(seed=s, noise=noise) for s in range(seeds)])


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


# ── labels saved, a secondary figure ─────────────────────────────────────────────────────────────


@pytest.mark.parametrize(("speed", "seeds"), [(1.0, 5), (1.5, 3), (0.7, 4)])
def test_the_interval_of_labels_saved_holds_the_truth_95_times_in_100(speed, seeds):
    """Of 200 made-up comparisons 190 ± 3.1 hold it; fewer than 178 would happen once in 2,000 tries."""
    held = 0
    for i in range(200):
        mine = range(i * seeds, (i + 1) * seeds)
        baseline = [run(seed=s, noise=0.01) for s in mine]
        s = labels_saved(paired([run("bald", s, speed, 0.01) for s in mine], baseline), baseline)
        held += s.low <= 1 - 1 / speed <= s.high
    assert held >= 178


def test_the_level_is_round_and_within_what_all_gain():
    runs = [run(seed=s) for s in range(3)]
    start, end = max(r.series("accuracy")[0] for r in runs), min(r.series("accuracy")[-1] for r in runs)
    assert level(runs) == np.floor(100 * (start + 0.9 * (end - start))) / 100


def test_labels_saved_of_one_seed_have_no_interval():
    """Speed 1.6 needs 1/1.6 of the labels: 37.5 % fewer."""
    s = compared(1.6, 1).saved
    assert s.share == pytest.approx(0.375, abs=0.02)
    assert (s.low, s.high) == (None, None)


# ── the primary comparison ───────────────────────────────────────────────────────────────────────


def ended(accuracy, labels, strategy="balentacq", seed=0):
    """A run of 10 labels and more that has this accuracy throughout."""
    rounds = [{"labels": n, "accuracy": accuracy} for n in (10, labels)]
    return Run("digits", strategy, seed, tuple(rounds), Path("records.jsonl"))


def test_differences_are_paired_over_the_curve_and_at_its_last_common_count():
    pairs = [(ended(own, 40), ended(other, 30)) for own, other in [(0.7, 0.6), (0.8, 0.6)]]
    for found in differences(pairs, 10.0, 30.0):
        assert found == pytest.approx([0.1, 0.2])


def test_the_primary_comparison_by_hand():
    """Gains of 0.1 and 0.2 throughout: mean 0.15, and t₁ · sd / √2 = 12.7062 · 0.05; t = 3 has p = 1 − 2 atan(3)/π."""
    c = versus(
        [ended(0.7, 40, seed=0), ended(0.8, 40, seed=1)],
        [ended(0.6, 30, "random", 0), ended(0.6, 30, "random", 1)],
    )
    assert (c.gain, c.low, c.high) == pytest.approx((0.15, 0.15 - 0.63531, 0.15 + 0.63531), abs=1e-5)
    assert c.p == pytest.approx(1 - 2 * np.arctan(3) / np.pi)
    assert (c.span, c.tests, c.verdict) == ((10.0, 30.0), 1, "undecided")


def test_areas_that_differ_by_rounding_alone_are_equal():
    """One straight line, evaluated at other label counts: areas may differ by 1e-17, with even less spread."""

    def line(strategy, seed, *counts):
        rounds = ({"labels": n, "accuracy": 0.1 + (0.7 + 0.001 * seed) * (n - 20) / 380} for n in counts)
        return Run("digits", strategy, seed, tuple(rounds), Path())

    c = versus(
        [line("bald", s, 20, 33, 57, 123, 230, 311, 400) for s in range(5)],
        [line("random", s, 20, 400) for s in range(5)],
    )
    assert set(c.areas) == {0.0}
    assert c.p == 1.0


def test_all_strategies_are_compared_over_the_same_label_counts():
    """A strategy that was stopped early gains most where curves are steep, and would come first over its own range."""
    runs = [run(name, s, speed) for name, speed in {"bald": 1.3, "random": 1.0}.items() for s in range(2)]
    runs += [run("entropy", s, 1.2, labels=made_up.LABELS[:5]) for s in range(2)]
    (found,) = comparisons(groups(runs))
    assert {c.span for c in found.values()} == {(20.0, 100.0)}
    assert found["bald"].gain > found["entropy"].gain


def test_only_seeds_that_both_have_are_compared():
    c = versus([run("bald", s, 1.5) for s in (0, 1, 2)], [run(seed=s) for s in (1, 2, 3)])
    assert (c.seeds, len(c.areas)) == (2, 2)


def test_the_correction_is_over_all_strategies_of_a_report():
    """Also over those of other experiments; a strategy of one seed is no test."""
    runs = [run(name, s, 1.1, 0.01) for name in ("bald", "entropy", "random") for s in range(4)]
    other = [Run("moons", r.strategy, r.seed, r.records, r.path) for r in runs]
    alone, (both, _) = comparisons(groups(runs))[0], comparisons(groups([*runs, run("mean_sd"), *other]))
    assert [found["bald"].tests for found in (alone, both)] == [2, 4]
    assert both["mean_sd"].tests == 0
    assert both["bald"].p > alone["bald"].p
    assert both["bald"].high - both["bald"].low > alone["bald"].high - alone["bald"].low


# ── the sentence ─────────────────────────────────────────────────────────────────────────────────


def straight(strategy, seed, speed):
    """A run whose accuracy is 5 % + 0.2 % for each label, times its speed."""
    rounds = (
        {"round": i, "labels": n, "accuracy": min(1.0, 0.05 + 0.002 * n * speed)}
        for i, n in enumerate(range(20, 420, 20))
    )
    return Run("digits", strategy, seed, tuple(rounds), Path())


def test_the_sentence_by_hand():
    """Between the curves lies ∫ min(0.002 n, 0.95 - 0.002 n) dn = 106.8 from 20 to 400: 28.1 % of 380.

    Random gains from 9 % to 85 %, and 90 % of that is at 77.4 %: 77 % needs 360 labels, at double speed 180.
    """
    c = versus([straight("balentacq", s, 2) for s in range(3)], [straight("random", s, 1) for s in range(3)])
    assert sentence(c) == (
        "balentacq is more accurate than random: +28.1 points on average from 20 to 400 labels "
        "(95 % CI +28.1 to +28.1, p < 0.001; 3 seeds). Secondary, not corrected: 50 % fewer labels to reach 77 % "
        "(95 % CI 50 to 50 % fewer); +15.0 points with 400 labels (95 % CI +15.0 to +15.0)"
    )


def test_a_clear_win():
    said = sentence(compared(1.6, 5, 0.01))
    assert re.match(
        r"balentacq is more accurate than random: \+\d\.\d points on average from 20 to 400 labels "
        r"\(95 % CI \+\d\.\d to \+\d+\.\d, p [<=] 0\.0\d\d; 5 seeds\)\. "
        r"Secondary, not corrected: \d\d % fewer labels to reach 8\d % \(95 % CI ",
        said,
    )


def test_a_clear_loss():
    said = sentence(compared(0.6, 5, 0.01, "entropy"))
    assert re.match(r"entropy is less accurate than random: −\d\.\d points on average from 20 to 400 labels ", said)
    assert re.search(r"Secondary, not corrected: \d\d % more labels to reach \d\d % \(95 % CI ", said)


@pytest.mark.parametrize("noise", [0.0, 0.01])
def test_no_difference(noise):
    said = sentence(compared(1.0, 5, noise, "bald"))
    assert said.startswith("No difference shown between bald and random: ")


def test_a_difference_within_the_noise_is_not_claimed():
    """Two seeds have t = 12.7: 10 % fewer labels are not distinguished from none."""
    c = compared(1.1, 2, 0.02)
    assert c.verdict == "undecided"
    assert c.low < 0 < c.high
    assert sentence(c).startswith("No difference shown between balentacq and random: ")


def test_a_secondary_figure_that_leaves_out_zero_claims_nothing():
    """Three intervals at 5 % were tested, and each of them could claim: here the end differs, and the area does not."""
    late = {s: [0.5, 0.5 + 0.1 * (s - 1), 0.80 + 0.01 * s] for s in range(3)}
    flat = {s: [0.5, 0.5, 0.60] for s in range(3)}
    c = versus(*([given(name, s, values[s]) for s in range(3)] for name, values in (("bald", late), ("random", flat))))
    said = sentence(c)
    assert said.startswith("No difference shown between bald and random: ")
    assert "Secondary, not corrected: " in said
    assert "+21.0 points with 30 labels (95 % CI +18.5 to +23.5)" in said


def given(strategy, seed, accuracies):
    rounds = ({"round": i, "labels": 10 * (i + 1), "accuracy": a} for i, a in enumerate(accuracies))
    return Run("digits", strategy, seed, tuple(rounds), Path())


def test_one_seed_only_has_no_interval_and_shows_nothing():
    said = sentence(compared(1.6, 1))
    assert re.match(r"One seed cannot show a difference between balentacq and random: \+\d\.\d points on average", said)
    assert "without an interval" in said
    assert "CI" not in said


def test_a_strategy_that_does_not_get_there_is_said_not_to():
    """Speed 0.3 has at 400 labels what random has at 120."""
    c = compared(0.3, 4, 0.002, "entropy")
    assert c.saved.censored == 4
    assert c.saved.level < c.saved.unreached
    said = sentence(c)
    assert said.startswith("entropy is less accurate than random: −")
    assert re.search(r"Secondary, not corrected: 2\d\d % more labels to reach ", said)
    assert re.search(r"entropy does not reach 8\d % in 4 of 4 seeds with 400 labels, and random does; ", said)
    assert re.search(r"; −\d\d\.\d points with 400 labels \(95 % CI −\d\d\.\d to −\d\d\.\d\)$", said)


def test_a_strategy_that_never_moves_has_no_labels_saved():
    flat = [run("bald", s, labels=made_up.LABELS) for s in range(3)]
    for r in flat:
        for record in r.records:
            record["accuracy"] = 0.1
    c = versus(flat, [run(seed=s) for s in range(3)])
    assert c.saved.share is None
    assert sentence(c).startswith("bald is less accurate than random: −")
    assert "in 3 of 3 seeds with 400 labels, and random does" in sentence(c)


def test_a_failing_strategy_is_never_listed_first():
    """The defect: sentences were sorted by labels saved, and one that never reaches random's level has a lower level.

    Here it saves half of the labels at 50 %, where it stays, and the area is 12 points worse than random.
    """
    fast = [given("bald", s, [0.3, 0.5, 0.5, 0.5, 0.5, 0.5 + 0.001 * s]) for s in range(3)]
    level = [given("entropy", s, [0.3, 0.4, 0.5, 0.7, 0.8, 0.9]) for s in range(3)]
    plain = [given("random", s, [0.3, 0.4, 0.5, 0.7, 0.8, 0.9]) for s in range(3)]
    (f,) = summary([*fast, *level, *plain]).findings
    assert f.comparisons["bald"].saved.share > 0.2
    assert f.comparisons["bald"].gain < -0.1
    assert [said.split(" ")[0] for said in f.sentences] == ["No", "bald"]
    assert f.order == ["entropy", "random", "bald"]


def test_what_cannot_be_compared_is_said_and_comes_last():
    said = summary([run("bald", 0), run("entropy", 1, 0.5), run(seed=1)]).sentences
    assert said[1] == "bald and random cannot be compared: they have no seed in common"
    one = np.array([20])
    assert summary([run("bald", labels=one), run(labels=one)]).sentences == [
        "bald and random cannot be compared: there are no two label counts between which all strategies were evaluated"
    ]


def test_without_random_there_is_no_claim():
    assert "random was not run" in summary([run("bald")]).sentences[0]
    assert "nothing to compare" in summary([run()]).sentences[0]


def test_without_random_strategies_are_in_the_order_of_their_areas():
    (f,) = summary([run("bald", speed=0.7), run("entropy", speed=1.3)]).findings
    assert f.order == ["entropy", "bald"]


def test_strategies_are_in_order_with_random_last():
    (group,) = groups([run(), run("entropy"), run("bald")])
    assert list(group.strategies) == ["bald", "entropy", "random"]


def test_points_keep_their_sign_and_their_first_digit():
    assert [points(share) for share in (0.0123, -0.1, 0.0, 0.0003)] == ["+1.2", "−10.0", "0.0", "+0.03"]


# ── the headline ─────────────────────────────────────────────────────────────────────────────────


def judged(name, verdict, seeds=3):
    gain, p = {"more": (0.02, 0.01), "less": (-0.02, 0.01), "undecided": (0.01, 0.4), "single": (0.01, np.nan)}[verdict]
    areas = (gain,) if verdict == "single" else (gain - 0.001, gain, gain + 0.001)
    return Comparison(name, len(areas), (20.0, 200.0), areas, p=p, low=gain - 0.01, high=gain + 0.01, tests=2)


@pytest.mark.parametrize(
    ("verdicts", "said"),
    [
        (["more", "more"], "a is more accurate than random: +2.0 points on average from 20 to 200 labels"),
        (["more", "more"], "; b is too."),
        (["more", "more", "more"], "; b and c are too."),
        (["undecided", "undecided"], "No difference from random is shown for a and b (3 seeds)."),
        (["undecided", "less"], "b is less accurate than random (3 seeds); no difference from random is shown for a"),
        (["single", "single"], "One seed cannot show a difference from random for a and b."),
        (["undecided"], "No difference shown between a and random: +1.0 points"),
    ],
)
def test_the_primary_result_is_one_sentence(verdicts, said):
    found = headline([judged(name, verdict) for name, verdict in zip("abc", verdicts, strict=False)])
    assert said in found
    assert found.endswith(".")
    assert "Secondary" not in found
