"""Thousands of reports whose truth is known: how often they claim what is not so, and what they list first.

Six strategies and random, as in `balent run digits`. The strategies of a seed share its start set and its difficulty,
each run has a drift of its own, and each evaluation the noise of a test set of 1,000 points.
"""

from pathlib import Path

import numpy as np
import pytest

from balent.report.load import Run
from balent.report.summary import summary

LABELS = np.arange(20, 210, 20)
NAMES = ("badge", "bald", "balentacq", "entropy", "mean_sd", "power_bald", "random")
POINTS = 1000  # of the test set


def curves(rng, seeds, failing=False):
    """Accuracies [strategies, seeds, counts]; a failing first strategy is 11 points worse on average.

    It learns twice as fast as the others up to 62 %, and then no more: at a lower level it saves labels.
    """
    hard = np.exp(0.2 * rng.standard_normal((1, seeds, 1)))
    truth = np.repeat(0.95 - 0.75 * np.exp(-LABELS / 80 / hard), len(NAMES), 0)
    if failing:
        truth[0, :, 1:] = np.minimum(0.62, 0.95 - 0.75 * np.exp(-LABELS[1:] / 40 / hard[0]))
    drift = 0.01 * rng.standard_normal(truth.shape).cumsum(-1)
    found = rng.binomial(POINTS, np.clip(truth + drift, 0, 1)) / POINTS
    found[..., 0] = found[-1, :, 0]  # the start set is shared
    return found


def report(accuracies):
    """Its only experiment."""
    of = zip(NAMES, accuracies.tolist(), strict=True)
    each = ((name, seed, row) for name, rows in of for seed, row in enumerate(rows))
    (findings,) = summary([Run("digits", name, seed, rounds(row), Path()) for name, seed, row in each]).findings
    return findings


def rounds(accuracies):
    return tuple({"labels": n, "accuracy": a} for n, a in zip(LABELS.tolist(), accuracies, strict=True))


def claims(findings):
    return sum(" accurate than random: " in said for said in findings.sentences)


def false_reports(seeds, reports):
    """How many reports without any true difference claim one."""
    rng = np.random.default_rng(seeds)
    return sum(claims(report(curves(rng, seeds))) > 0 for _ in range(reports))


@pytest.mark.parametrize(("seeds", "reports", "most"), [(3, 40, 8), (10, 20, 5)])
def test_few_reports_without_a_true_difference_claim_one(seeds, reports, most):
    """At most 5 % may, and more than these once in 3,000 tries. It was 49 % with 3 seeds and 39 % with 10."""
    assert false_reports(seeds, reports) <= most


@pytest.mark.slow
@pytest.mark.parametrize(("seeds", "reports", "most"), [(3, 2000, 133), (10, 500, 42)])
def test_at_most_one_report_in_twenty_without_a_true_difference_claims_one(seeds, reports, most):
    """At 5 % 100 ± 9.7 of 2,000 reports, 25 ± 4.9 of 500; more than these happen once in 2,000 tries."""
    assert false_reports(seeds, reports) <= most


@pytest.mark.parametrize(("seeds", "reports"), [(3, 20), (10, 5)])
def test_a_strategy_eleven_points_worse_is_never_listed_first(seeds, reports):
    """It was, by labels saved at a level that it reaches. By the area it is the last of six, in every report."""
    rng = np.random.default_rng(seeds)
    for _ in range(reports):
        findings = report(curves(rng, seeds, failing=True))
        assert -0.2 < findings.comparisons["badge"].gain < -0.02
        assert findings.comparisons["badge"].saved.share > 0
        assert findings.order[-1] == "badge"
        assert "badge" in findings.sentences[-1]


def test_a_strategy_eleven_points_worse_is_said_to_be_less_accurate():
    """With ten seeds, in every report: the correction costs little there."""
    rng = np.random.default_rng(0)
    for _ in range(4):
        said = report(curves(rng, 10, failing=True)).sentences[-1]
        assert said.startswith("badge is less accurate than random: −")
