"""Items of many parts: scores against loops over plain numbers, part by part, and what must not change them."""

import math

import pytest
import torch
from helpers.examples import f64
from torch.testing import assert_close

from balent import MEASURES, Moments
from balent.maths.error import jackknife
from balent.maths.facts import facts
from balent.maths.measures import zero_first
from balent.maths.parts import Aggregate, Items
from balent.maths.scored import scored


def drawn(parts, draws=6, classes=3, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return (2 * torch.randn(parts, draws, classes, generator=generator, dtype=torch.float64)).softmax(-1)


def of(draws, place, count, shape, aggregate, binary=False):
    m = Moments.of(draws)
    items = Items(torch.as_tensor(place), count, shape, Aggregate.named(aggregate), binary)
    return Moments(m.n, m.mean, m.var, m.within, m.entropy, items)


def by_loops(values, ranks, aggregate):
    """The aggregate of one item, as one would do it by hand."""
    order = sorted(range(len(values)), key=lambda i: -ranks[i])
    if aggregate == "max":
        return values[order[0]]
    if aggregate.startswith("top"):
        best = order[: max(1, math.ceil(round(float(aggregate[4:]) * len(order), 9)))]
        return math.fsum(values[i] for i in best) / len(best)
    total = math.fsum(values)
    return total if aggregate == "sum" else total / len(values)


def test_two_parts_by_hand():
    """Draws (.9, .5) have BALD H(.7) − (H(.9) + log 2)/2; draws that agree have 0."""
    draws = f64([[[0.9, 0.1], [0.5, 0.5]], [[0.5, 0.5], [0.5, 0.5]]])

    def h(p):
        return -p * math.log(p) - (1 - p) * math.log(1 - p)

    alone = h(0.7) - (h(0.9) + math.log(2)) / 2
    for aggregate, expected in (("mean", alone / 2), ("sum", alone), ("max", alone), ("top:0.5", alone)):
        assert_close(scored(MEASURES["bald"], of(draws, [0, 1], 1, (2,), aggregate)), f64([expected]))


@pytest.mark.parametrize("aggregate", ["mean", "max", "sum", "top:0.1", "top:0.34", "top:1"])
@pytest.mark.parametrize("name", [name for name in MEASURES if name != "random"])
def test_scores_of_items_are_those_of_loops_over_parts(name, aggregate):
    """Three items of 7 places; some are ignored. Jumping measures are averaged before the jump."""
    place = [0, 1, 2, 3, 4, 5, 6, 8, 15, 16, 18, 20]
    draws = drawn(len(place))
    balance = facts(MEASURES[name]).balance
    inner, jump = (balance, zero_first) if balance else (MEASURES[name], lambda x: x)
    values = [float(inner(Moments.of(draws[i : i + 1]))) for i in range(len(place))]
    ranks = [float(jump(f64([value]))) for value in values]
    expected = []
    for item in range(3):
        rows = [i for i, where in enumerate(place) if where // 7 == item]
        expected.append(by_loops([values[i] for i in rows], [ranks[i] for i in rows], aggregate))
    assert_close(scored(MEASURES[name], of(draws, place, 3, (7,), aggregate)), jump(f64(expected)))


@pytest.mark.parametrize("name", ["bald", "balentacq", "entropy"])
@pytest.mark.parametrize("aggregate", ["mean", "max", "sum", "top:0.3"])
def test_an_item_of_one_part_is_a_point(name, aggregate):
    draws = drawn(5)
    assert_close(scored(MEASURES[name], of(draws, range(5), 5, (), aggregate)), MEASURES[name](Moments.of(draws)))


def test_the_sum_of_information_bounds_that_of_all_parts_together():
    """I(ω, Y₁ … Y_P) ≤ Σ I(ω, Y_p), since parts are independent given ω: over all 3⁴ outcomes, by loops."""
    draws = drawn(4)
    joint = f64([1.0] * 6)[:, None]
    for part in draws:  # [draws, outcomes so far] x [draws, classes]
        joint = (joint[:, :, None] * part[:, None, :]).flatten(1)
    mean = joint.mean(0)
    information = float(torch.special.entr(mean).sum() - torch.special.entr(joint).sum(1).mean())
    bound = float(scored(MEASURES["bald"], of(draws, range(4), 1, (4,), "sum")))
    assert 0 < information < bound


def test_one_part_near_zero_does_not_outweigh_all_others():
    """1/BalEnt of one part is 10⁶ and more; the mean of BalEnt hardly moves."""
    spread = f64([[[p, 1 - p] for p in torch.linspace(0.01, 0.99, 99, dtype=torch.float64)]])
    m = of(spread.expand(10, -1, -1), range(10), 1, (10,), "mean")
    assert float(scored(MEASURES["balentacq"], m)) < 5


def test_several_labels_have_the_paper_s_marginals():
    """A label that holds with probability P ~ Beta(a, b): U = m h(Beta(a + 1, b)) + (1 − m) h(Beta(b + 1, a))."""
    p = drawn(1, draws=50, classes=2)[0, :, 0]
    m, v = p.mean(), p.var(correction=0)
    s = m * (1 - m) / v - 1
    a, b = m * s, (1 - m) * s
    h = torch.distributions.Beta
    u = m * h(a + 1, b).entropy() + (1 - m) * h(b + 1, a).entropy()
    entropy = -(m * m.log() + (1 - m) * (1 - m).log())
    expected = (u + entropy) / (entropy + math.log(2))
    found = of(torch.stack([1 - p, p], -1)[None], [0], 1, (1,), "sum", binary=True)
    assert_close(scored(MEASURES["balent"], found), expected[None])
    assert_close(found.shares, m[None, None])


def test_groups_of_draws_add_up_and_give_errors():
    draws = drawn(6, draws=40)
    groups = [of(draws[:, i::4], range(6), 2, (3,), "mean") for i in range(4)]
    whole = groups[0] + groups[1] + groups[2] + groups[3]
    assert_close(scored(MEASURES["bald"], whole), scored(MEASURES["bald"], of(draws, range(6), 2, (3,), "mean")))
    assert bool((jackknife(groups, MEASURES["bald"]) > 0).all())


def test_shares_and_grids_leave_ignored_parts_out():
    draws = drawn(3)
    m = of(draws, [0, 1, 3], 2, (2,), "mean")
    mean = draws.mean(1)
    assert_close(m.shares, torch.stack([mean[:2].mean(0), mean[2]]))
    assert_close(m.items.grid(m.mean)[1, 0], torch.zeros(3, dtype=torch.float64))
    assert m.items.grid(m.mean).shape == (2, 2, 3)


def test_three_tenths_of_ten_parts_are_three():
    """0.3 · 10 is 3.0000000000000004 in some orders of arithmetic; never four parts."""
    items = Items(torch.arange(30), 1, (30,), Aggregate.named("top:0.1"))
    assert_close(items.scores(torch.arange(30.0, dtype=torch.float64)), f64([28.0]))


@pytest.mark.parametrize("name", ["median", "top", "top:0", "top:2", "top:x", "mean:3", 7])
def test_other_aggregates_are_refused(name):
    with pytest.raises(ValueError, match=r"there is no aggregate .*top:0\.1"):
        Aggregate.named(name)


def test_blocks_of_items_are_scored_one_by_one():
    m = of(drawn(2), [0, 1], 2, (1,), "mean")
    with pytest.raises(ValueError, match="score each block by itself"):
        Moments.cat([m, m])
