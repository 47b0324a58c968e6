"""The statistics behind findings: values by hand, and how often chance alone raises an alarm."""

import numpy as np
import pytest
import torch

from balent.apps.doctor.balance import balance
from balent.apps.doctor.calibrated import GAP, calibration
from balent.apps.doctor.duplication import are_near, nearest_others, redundant
from balent.apps.doctor.finding import FAILURE, OK, OPEN, WARNING
from balent.apps.doctor.looked import KEY, SAMPLE, looked_at
from balent.apps.doctor.meaning import Skill, votes
from balent.apps.doctor.mislabelled import CLEAR, LARGE, SOME, noise
from balent.apps.doctor.patient import Patient
from balent.apps.doctor.prospects import half, planned
from balent.apps.doctor.tallies import Audit, Equal, LabelSet
from balent.data.pool import as_source
from balent.kernels.hashing import mixed

SEEDS = range(20)


def posterior(seed, labels=200, classes=4, sharp=6.0):
    """Probabilities p, and classes that have them: what an ideal model would say of data without wrong labels."""
    rng = np.random.default_rng(seed)
    z = sharp * rng.normal(size=(labels, classes))
    p = np.exp(z) / np.exp(z).sum(1, keepdims=True)
    return p, (rng.random((labels, 1)) < p.cumsum(1)).argmax(1), rng


def flipped(y, share, classes, rng):
    return np.where(rng.random(len(y)) < share, (y + rng.integers(1, classes, len(y))) % classes, y)


def findings(check, **facts):
    """Of a check that looks at these facts alone: they are in place of what the patient would find out."""
    patient = Patient.__new__(Patient)
    vars(patient).update(facts)
    return [*check(patient)]


# ── label noise ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("sharp", [2.0, 6.0])
def test_classes_that_overlap_are_not_taken_for_noise(sharp):
    """The interval leaves out 0 in 5 % of clean sets at most, and lies above SOME much more rarely: none of 20."""
    found = [noise(*posterior(seed, sharp=sharp)[:2]) for seed in SEEDS]
    assert not any(one.low >= SOME for one in found)


def test_noise_of_a_fifth_is_found_and_measured():
    """20 % of 200 labels: the standard error of a share is 2.8 points, so the mean of 20 is within 2."""
    found = []
    for seed in SEEDS:
        p, y, rng = posterior(seed)
        found.append(noise(p, flipped(y, 0.2, 4, rng)))
    assert abs(np.mean([one.share for one in found]) - 0.2) < 0.02
    assert sum(one.low <= 0.2 <= one.high for one in found) >= 16  # of 20 intervals of 95 %: fewer in 1 of 400
    assert sum(one.low >= LARGE and one.skill >= CLEAR for one in found) >= 18


def test_a_model_that_is_half_as_sure_as_it_should_be_finds_the_same_noise():
    """Confidence is scaled by t before labels are judged: probabilities to the power of 1/2 change nothing."""
    p, y, rng = posterior(0)
    y, flat = flipped(y, 0.2, 4, rng), np.sqrt(p) / np.sqrt(p).sum(1, keepdims=True)
    assert noise(flat, y).share == pytest.approx(noise(p, y).share, abs=0.011)


def test_guesses_without_skill_are_not_taken_for_noise():
    rng = np.random.default_rng(0)
    p = rng.dirichlet(np.ones(4), size=200)
    assert noise(p, rng.integers(4, size=200)).skill < CLEAR


# ── calibration ──────────────────────────────────────────────────────────────────────────────────────


def alarm(found):
    return found.error > found.chance and abs(found.gap) >= GAP


def test_calibrated_probabilities_are_left_alone():
    """One in a hundred exceeds `chance`; three of 20 by chance: 0.1 %."""
    found = [calibration(p, y, rng) for p, y, rng in map(posterior, SEEDS)]
    assert sum(alarm(one) for one in found) <= 2


def test_overconfidence_is_found():
    """Probabilities to the power of three say much more than labels confirm."""
    for seed in range(5):
        p, y, rng = posterior(seed, sharp=1.0)
        sure = p**3 / (p**3).sum(1, keepdims=True)
        found = calibration(sure, y, rng)
        assert alarm(found)
        assert found.gap > GAP


# ── features ─────────────────────────────────────────────────────────────────────────────────────────


def test_kappa_of_guesses_by_hand():
    """6 of 8 right, and 4 of 8 by chance: κ = (6/8 − 4/8) / (1 − 4/8) = 1/2."""
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    assert Skill.of(np.array([0, 0, 0, 1, 1, 1, 1, 0]), y).kappa == pytest.approx(0.5)


def test_votes_of_neighbours_by_hand():
    """Two clusters of six: the five nearest others of each point are those of its cluster."""
    x = torch.cat([torch.arange(6.0), 100 + torch.arange(6.0)])[:, None]
    y = np.repeat([0, 1], 6)
    assert votes(x, y).tolist() == y.tolist()


def test_random_features_are_seldom_above_chance():
    """An interval of 99 %: 0.5 % each. Three of 60 by chance: 0.4 %."""
    above = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, y = torch.from_numpy(rng.normal(size=(200, 8))).float(), rng.integers(4, size=200)
        above += Skill.of(votes(x, y), y).low > 0
    assert above <= 2


# ── duplicates ───────────────────────────────────────────────────────────────────────────────────────


def test_the_share_of_duplicates_is_worked_out_from_the_pairs_of_a_sample():
    """A pool of 100,000 in which every point stands twice, half of it redundant, seen through 4,000 points."""
    at = (mixed(KEY, torch.arange(4096)) % 100_000).unique()
    counts = np.bincount(at.numpy() // 2)
    pairs = int((counts == 2).sum())
    found = redundant(Equal(len(at), pairs, pairs, once=False), 100_000)
    assert found == pytest.approx(0.5, abs=0.06)  # 80 pairs, ± 9: m is known to 11 %, m / (1 + m) to 6 points


def test_of_a_pool_that_is_seen_as_a_whole_the_share_is_counted():
    assert redundant(Equal(looked=10, redundant=3, pairs=4, once=False), 10) == 0.3


@pytest.mark.parametrize("width", [2, 8, 64])
def test_points_without_duplicates_have_few_near_ones(width):
    """P(d₁ ≤ d₂ / 10) = 10^-width of random points: 1 % of 2,000 in two dimensions, ± 0.2 %."""
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(2000, width))).float()
    assert float(are_near(x).float().mean()) == pytest.approx(10.0**-width, abs=0.008)


def test_near_duplicates_are_those_that_were_made():
    """Each of the first 300 points stands there three times more."""
    x = torch.from_numpy(np.random.default_rng(0).normal(size=(700, 16))).float()
    near = are_near(torch.cat([x, *(x[:300] + 0.01 * i for i in (1, 2, 3))]))
    assert near[:300].all()
    assert near[700:].all()
    assert not near[300:700].any()


def test_the_nearest_other_point_is_not_the_point_itself():
    assert nearest_others(torch.tensor([[0.0], [1.0], [3.0]])).tolist() == [[1, 3], [1, 2], [2, 3]]


# ── classes ──────────────────────────────────────────────────────────────────────────────────────────


def of_counts(*counts):
    y = np.repeat(np.arange(len(counts)), counts)
    [found] = findings(balance, labels=LabelSet(y, tuple("abcdefgh"[: len(counts)]), np.zeros(len(y), dtype=bool)))
    return found


@pytest.mark.parametrize(
    ("counts", "level"),
    [
        ((50, 50), OK),
        ((30, 10), OK),  # 1:3 happens
        ((95, 5), WARNING),  # surely below a third of an equal share
        ((12, 0), OPEN),  # too few to say
        ((30, 0), FAILURE),
        ((300, 200, 0), WARNING),
    ],
)
def test_classes_by_their_counts(counts, level):
    assert of_counts(*counts).level == level


def test_equally_frequent_classes_seldom_raise_an_alarm():
    """LEVEL is 1 % for all classes together. Three of 100 by chance: 8 %; five: 0.3 %."""
    rng = np.random.default_rng(0)
    found = [of_counts(*rng.multinomial(200, [1 / 8] * 8)).level for _ in range(100)]
    assert found.count(WARNING) < 5


# ── the sample, and random checks ────────────────────────────────────────────────────────────────────


def test_a_large_pool_is_looked_at_through_the_same_points_every_time():
    pool = as_source(torch.arange(100_000.0)[:, None])
    one, other = (torch.cat([at for _, at in looked_at(pool, SAMPLE)]) for _ in range(2))
    assert torch.equal(one, other)
    assert len(one) > 0.95 * SAMPLE
    assert 45_000 < float(one.double().mean()) < 55_000


def test_of_a_stream_the_first_points_are_looked_at():
    pool = as_source(iter([torch.zeros(300, 2), torch.ones(300, 2), torch.ones(300, 2)]))
    assert sum(len(at) for _, at in looked_at(pool, 400)) == 400


def test_the_width_of_an_interval_by_hand():
    """56 of 80: 0.592 to 0.789 (Wilson)."""
    assert half(0.7, 80) == pytest.approx((0.789 - 0.592) / 2, abs=0.001)


def test_random_checks_are_every_fifth_question_up_to_the_reserve():
    audit = Audit(answered=10, right=None, most=60, every=5)
    assert [planned(audit, 50, goal) for goal in (50, 100, 1000)] == [10, 20, 60]
