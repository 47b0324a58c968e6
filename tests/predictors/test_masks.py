"""Masks are pure functions of seed, layer, draw and position, and as random as they should be."""

import math
import subprocess
import sys

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.testing import assert_close

from balent import kernels
from balent.kernels import hashing
from balent.predictors.dropout.masks import Masks

POSITIONS = torch.tensor([0, 7, 3, 10**12])


def test_splitmix64_gives_its_published_numbers():
    """Seed 1234567 of the reference implementation (Vigna, splitmix64.c); as signed numbers here."""
    published = [6457827717110365317, 3203168211198807973, 9817491932198370423, 4593380528125082431]
    found = hashing.mixed(1234567, torch.arange(4))
    assert [int(x) % 2**64 for x in found] == published


@pytest.mark.parametrize("units", [1, 3, 8, 16, 37])
@pytest.mark.parametrize("p", [0.0, 1e-9, 0.2, 0.5, 0.999999, 1.0])
def test_the_kernel_gives_the_bits_of_plain_torch(level, units, p):
    keys = hashing.mixed(3, torch.arange(24).view(2, 3, 4)) * torch.tensor([1, -1, 1, -1])
    assert torch.equal(kernels.kept(keys, units, p), hashing.kept(keys, units, p))


def test_keys_in_any_layout_are_the_same_keys(kernel):
    keys = hashing.mixed(3, torch.arange(20).view(4, 5))
    assert torch.equal(kernels.kept(keys.t(), 9, 0.4), kernels.kept(keys.t().contiguous(), 9, 0.4))


@pytest.mark.parametrize("p", [0.05, 0.2, 0.5, 0.9])
@pytest.mark.parametrize("per_point", [False, True])
def test_a_share_of_p_is_dropped(p, per_point):
    """Over units, draws, positions and neighbours: 4.9 standard errors, so one seed in a million fails each."""
    kept = Masks(1, 200, per_point).kept(0, 500, p, torch.arange(20) if per_point else None)
    allowed = 4.9 * (p * (1 - p) / kept.numel()) ** 0.5
    assert abs(float(kept.mean()) - (1 - p)) < allowed
    for axis in range(kept.ndim):
        first, second = kept.narrow(axis, 0, kept.shape[axis] - 1), kept.narrow(axis, 1, kept.shape[axis] - 1)
        both = float((first * second).mean())
        assert abs(both - (1 - p) ** 2) < 4.9 * (first.numel()) ** -0.5


def test_nothing_is_dropped_at_zero_and_nearly_everything_near_one():
    assert Masks(0, 50).kept(0, 100, 0.0).min() == 1
    assert Masks(0, 50).kept(0, 100, 1 - 1e-12).max() == 0
    assert Masks(0, 50, design="stratified").kept(0, 100, 0.0).min() == 1


def test_shared_masks_have_no_axis_for_points_and_others_need_positions():
    assert Masks(0, 5).kept(0, 9, 0.5, POSITIONS).shape == (5, 9)
    assert Masks(0, 5, per_point=True).kept(0, 9, 0.5, POSITIONS).shape == (5, 4, 9)
    with pytest.raises(
        ValueError, match=r"masks per point need the positions of the points: sampled\(batch, positions"
    ):
        Masks(0, 5, per_point=True).kept(0, 9, 0.5)


def test_a_mask_per_point_belongs_to_the_position_not_to_the_batch():
    masks = Masks(2, 6, per_point=True)
    whole = masks.kept(1, 30, 0.5, POSITIONS)
    order = torch.tensor([2, 0, 3, 1])
    assert torch.equal(masks.kept(1, 30, 0.5, POSITIONS[order]), whole[:, order])
    assert torch.equal(masks.kept(1, 30, 0.5, POSITIONS[1:2]), whole[:, 1:2])
    assert len(whole.transpose(0, 1).flatten(1).unique(dim=0)) == 4


VARIED = {
    "seed": [Masks(seed, 3).kept(0, 64, 0.5) for seed in (0, 1, -1, 2**40)],
    "layer": [Masks(0, 3).kept(layer, 64, 0.5) for layer in range(4)],
    "draw": list(Masks(0, 4).kept(0, 64, 0.5)),
    "stratified seed": [Masks(seed, 3, design="stratified").kept(0, 64, 0.5) for seed in range(4)],
    "stratified layer": [Masks(0, 3, design="stratified").kept(layer, 64, 0.5) for layer in range(4)],
}


@pytest.mark.parametrize("masks", VARIED.values(), ids=VARIED)
def test_what_differs_in_anything_has_another_mask(masks):
    assert len(torch.stack([mask.flatten() for mask in masks]).unique(dim=0)) == len(masks)


@pytest.mark.parametrize("design", ["independent", "stratified"])
@given(cuts=st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(0, 9)).map(sorted))
def test_parts_are_slices(design, cuts):
    start, middle, stop = cuts
    masks = Masks(5, 10, design=design)
    whole = masks.kept(2, 20, 0.3)
    assert torch.equal(masks.part(start, stop + 1).kept(2, 20, 0.3), whole[start : stop + 1])
    part_of_part = masks.part(start, stop + 1).part(middle - start, stop + 1 - start)
    assert torch.equal(part_of_part.kept(2, 20, 0.3), whole[middle : stop + 1])


@pytest.mark.parametrize(("n", "p"), [(10, 0.2), (10, 0.5), (100, 0.2), (7, 0.3), (3, 0.1), (1, 0.5)])
def test_stratified_masks_drop_each_unit_equally_often(n, p):
    """p·n times, rounded up or down so that p is right on average: 4.9 standard errors of that."""
    dropped = n - Masks(1, n, design="stratified").kept(0, 4000, p).sum(0)
    assert set(dropped.tolist()) <= {math.floor(p * n + 1e-9), math.ceil(p * n - 1e-9)}
    assert abs(float(dropped.mean()) - p * n) < 4.9 * (0.25 / 4000) ** 0.5


def test_stratified_masks_have_no_favourite_draw():
    """Each draw drops about p of the units, as if it were alone: 4.9 standard errors in each of 10 draws."""
    by_draw = Masks(3, 10, design="stratified").kept(0, 5000, 0.2).mean(1)
    assert_close(by_draw, torch.full((10,), 0.8), rtol=0, atol=4.9 * (0.2 * 0.8 / 5000) ** 0.5)


PROGRAM = """
import torch
from balent.predictors.dropout.masks import Masks
for design, per_point in (("independent", False), ("independent", True), ("stratified", False)):
    kept = Masks(11, 4, per_point, design).kept(3, 40, 0.37, torch.tensor([5, 10**9]) if per_point else None)
    print("".join(str(int(x)) for x in kept.flatten()))
"""


@pytest.mark.parametrize("kernel_name", ["torch", "compiled"])
def test_another_process_has_the_same_masks(kernel_name, capsys, monkeypatch):
    if kernel_name == "torch":
        monkeypatch.setenv("BALENT_KERNEL", "torch")
    there = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, check=True)
    exec(PROGRAM, {})
    assert there.stdout == capsys.readouterr().out
    assert len(there.stdout.split()) == 3


def test_masks_stay_the_same_for_ever():
    """Runs of years ago can be repeated: a change of these bits is a change of every result."""
    assert Masks(0, 2).kept(0, 16, 0.5).int().tolist() == FIRST
    assert Masks(0, 2, design="stratified").kept(0, 16, 0.5).int().tolist() == STRATIFIED


FIRST = [[0, 1, 0, 1, 1, 0, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1], [0, 1, 0, 1, 0, 0, 0, 1, 1, 1, 1, 1, 0, 1, 1, 1]]
STRATIFIED = [[0, 1, 0, 0, 1, 0, 1, 0, 0, 1, 1, 0, 1, 0, 0, 1], [1, 0, 1, 1, 0, 1, 0, 1, 1, 0, 0, 1, 0, 1, 1, 0]]
